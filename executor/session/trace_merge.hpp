#pragma once
// Merges the traces of all ranks into one: each rank packs its trace, with the begin of its own
// time, and rank 0 merges them on one time axis.

#include <string>
#include <vector>

#include "executor/launch/socket.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

/// A rank's trace as bytes. `begun` is its time 0 on rank 0's clock.
std::string packed(const Trace& trace, Deadline begun);

/// One trace of all ranks, whose packed traces are listed by rank; time 0 is when the first began.
/// Errors  RunFailure{peer_failed}: `rank 1 sent a trace that cannot be read`
Trace merged(const std::vector<std::string>& traces);

}  // namespace orrery::executor
