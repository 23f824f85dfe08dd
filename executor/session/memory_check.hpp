#pragma once
// Whether a run fits in the memory of this machine, checked before any rank starts.

#include <optional>
#include <string>

#include "executor/launch/environment.hpp"
#include "executor/session/session.hpp"
#include "models/prediction/prediction.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// What one device of this machine, or all of its memory, has and would need.
struct NoRoom {
  models::OutOfMemory found{};  // of the first rank that does not fit
  std::string where{};          // "this machine", "NVIDIA H200"
};

/// Of the ranks that run here: on GPUs the fullest one, with context and libraries, against its
/// GPU's memory; on cores all of them together, by the Program's buffers, against the machine's.
/// Nothing: they fit, as far as can be said before.
std::optional<NoRoom> no_room(const models::Question& question, Backend backend,
                              const Placement& placed);

}  // namespace orrery::executor
