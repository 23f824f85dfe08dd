#pragma once
// Whether a run has room on this machine, before any rank starts.

#include <optional>
#include <string>

#include "executor/launch/environment.hpp"
#include "models/prediction/prediction.hpp"
#include "scenarios/command/execute_run.hpp"
#include "sim/quantity.hpp"

namespace orrery::scenarios {

/// What one device of this machine, or all of its memory, has and would need.
struct NoRoom {
  models::OutOfMemory found{};  // of the first rank that does not fit
  std::string where{};          // "this machine", "NVIDIA H200"
};

/// Of the ranks that run here: on GPUs the fullest one, with context and libraries, against its
/// GPU's memory; on cores all of them together, by the Program's buffers, against the machine's.
/// Nothing: they fit, as far as can be said before.
std::optional<NoRoom> no_room(const models::Question& question, const ExecuteOptions& options,
                              const executor::Placement& placed);

/// Says so, on stdout as JSON where that is asked for, else on stderr; the exit code.
int report(const NoRoom& found, const ExecuteOptions& options);

}  // namespace orrery::scenarios
