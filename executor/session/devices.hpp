#pragma once
// What a rank computes on: a core of this machine, or a GPU through the CUDA module.

#include <memory>
#include <string>

#include "executor/device/device.hpp"
#include "executor/launch/environment.hpp"
#include "executor/module/cuda_module.hpp"
#include "executor/session/session.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::executor {

/// The word of --backend, with all that it needs in place.
/// Errors  InputError `--backend: expected cpu or cuda, found 'x'`, `--backend: cuda: REASON` as
///         FoundCuda states it
Backend backend_of(const std::string& word);

/// The word of --fabric. Errors  InputError `--fabric: expected tcp, mpi, threads or nccl, ...`
FabricKind fabric_of(const std::string& word);

/// The loaded module. Errors: as backend_of.
const CudaModule& cuda_module();

/// A device, and which GPU it is: empty on a processor.
struct Equipment {
  std::unique_ptr<Device> device;
  std::string gpu;
};
/// This rank's: of the GPUs that it sees the one with its number on this machine, modulo their
/// count.
Equipment equipment(Backend backend, const Placement& placed);

/// The question as this device can run it: the profile of our own GPU executor has fused attention
/// where the kernel takes the heads, else GEMMs head by head. Other stacks are left as they are.
models::Question fitted(models::Question question, const Device& device);

}  // namespace orrery::executor
