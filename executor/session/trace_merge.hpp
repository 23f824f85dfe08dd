#pragma once
// Traces of ranks, each in its own time, as one: packed by each rank, merged by rank 0.

#include <string>
#include <vector>

#include "executor/launch/socket.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

/// A rank's trace as bytes. `begun` is when its time 0 was, on rank 0's clock.
std::string packed(const Trace& trace, Deadline begun);

/// All of them as one, by rank; time 0 is when the first rank began.
/// Errors  RunFailure{peer_failed}: `rank 1 sent a trace that cannot be read`
Trace merged(const std::vector<std::string>& traces);

}  // namespace orrery::executor
