#pragma once
// Chooses the device that a rank computes on: a core of this machine, or a GPU through the CUDA
// module. Reads the words of --backend and --fabric.

#include <memory>
#include <string>

#include "executor/device/device.hpp"
#include "executor/launch/environment.hpp"
#include "executor/module/cuda_module.hpp"
#include "executor/session/session.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::executor {

/// Reads --backend and checks that all it needs is in place.
/// Errors  InputError `--backend: expected cpu or cuda, found 'x'`, `--backend: cuda: REASON` as
///         FoundCuda states it
Backend backend_of(const std::string& word);

/// Reads --fabric. Errors  InputError `--fabric: expected tcp, mpi, threads or nccl, ...`
FabricKind fabric_of(const std::string& word);

/// The loaded module. Errors: as backend_of.
const GpuModule& gpu_module();

/// A rank's device, and the identity of its GPU; empty on a CPU.
struct Equipment {
  std::unique_ptr<Device> device;
  std::string gpu;
};
/// Makes this rank's device: of the GPUs that it sees, the one with the rank's number on this
/// machine, modulo their count.
Equipment equipment(Backend backend, const Placement& placed);

/// Adapts the question to this device: the profile of our own GPU executor uses fused attention
/// where the kernel supports the heads, else GEMMs head by head. Other stacks are left unchanged.
models::Question fitted(models::Question question, const Device& device);

}  // namespace orrery::executor
