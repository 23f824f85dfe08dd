#pragma once
// Whether a run fits in the memory of this machine, checked before any rank starts.

#include <optional>
#include <string>

#include "executor/launch/environment.hpp"
#include "executor/session/session.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::executor {

/// The memory that a device, or the whole machine, has and would need.
struct NoRoom {
  models::OutOfMemory found{};  // of the first rank that does not fit
  std::string where{};          // "this machine", "NVIDIA H200"
};

/// Compares the predicted memory of the ranks that run here with what there is. On GPUs: the
/// fullest rank, with context and libraries, against its GPU's memory. On cores: the Program's
/// buffers against the machine's memory, of all ranks that run on this host as far as the launcher
/// says, which is taken to fill hosts in order of ranks. nullopt: they are predicted to fit.
std::optional<NoRoom> no_room(const models::Question& question, Backend backend,
                              const Placement& placed);

}  // namespace orrery::executor
