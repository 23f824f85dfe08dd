#pragma once
// What a rank of `orrery execute` computes on: a core of this machine, or a GPU through the CUDA
// module; and for which cluster its run is predicted when nobody says.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/launch/environment.hpp"
#include "executor/module/cuda_module.hpp"
#include "models/prediction/prediction.hpp"
#include "scenarios/command/execute_run.hpp"
#include "scenarios/command/question_flags.hpp"

namespace orrery::scenarios {

/// The word behind --backend, with all that it needs in place.
/// Errors  InputError `--backend: expected cpu or cuda, found 'x'`, `--backend: cuda: REASON` as
///         executor::FoundCuda tells it
Backend backend_of(const std::string& word);

/// The loaded module. Errors: as backend_of.
const executor::CudaModule& cuda_module();

/// A device, and which GPU it is: empty on a processor.
struct Equipment {
  std::unique_ptr<executor::Device> device;
  std::string gpu;
};
/// This rank's: of the GPUs that it sees, the one of its number on this machine, all around.
Equipment equipment(Backend backend, const executor::Placement& placed);

/// The question as this device can run it: the profile of our own GPU executor has fused attention
/// where the kernel takes the heads, else products head by head. Other stacks are left as they are.
models::Question fitted(models::Question question, const executor::Device& device);

/// The cluster that a run is predicted for.
struct Home {
  std::optional<std::string> cluster{};  // for --cluster; nothing: the scenario's own
  std::vector<std::pair<std::string, Json>> changes{};
  std::string reason{};  // one sentence
};
/// The scenario's own cluster where it has this GPU, or where the catalogue has none like it; else
/// a node of the catalogue with this GPU, and as many of them as there are ranks on one machine.
/// Errors  InputError `--cluster: missing: the catalogue has no 'NVIDIA X'`
Home gpu_home(const QuestionFlags& asked, const executor::Placement& placed, std::int64_t ranks);

}  // namespace orrery::scenarios
