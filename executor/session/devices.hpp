#pragma once
// Chooses the device that a rank computes on: a core of this machine, or a GPU through a
// vendor's module. Reads the word of --fabric.

#include <memory>
#include <string>

#include "executor/device/device.hpp"
#include "executor/launch/environment.hpp"
#include "executor/module/gpu_vendors.hpp"
#include "executor/session/session.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::executor {

/// Reads --fabric. Errors  InputError `--fabric: expected tcp, mpi, threads or nccl, ...`
FabricKind fabric_of(const std::string& word);

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
