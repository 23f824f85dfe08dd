#pragma once
// The records of a trace with what a join asks of them: whose they are, and how long they took when
// waiting for others is left out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/comparison/comparison.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::scenarios {

struct JoinedRecord {
  const TraceRecord* record = nullptr;
  std::int64_t rank = 0, stage = 0;
  std::string_view path;         // the id without the rank: what all ranks of a stage share
  std::string block, operation;  // of a path by operation, the block without its layer
  bool upwards = false;          // of a transfer: a gradient on its way to the stage before
  bool launch = false;           // the host's part of an operation
  Time start{}, duration{};      // without waiting, once that was taken out
};

/// Records in the order of the trace. Those whose id is not `rank/...` are passed over.
std::vector<JoinedRecord> records_of(const Trace& trace);

/// Moves starts of collectives and receives to where nothing is waited for any more; the time that
/// this took out, over all ranks.
Time take_out_waiting(std::vector<JoinedRecord>& records);

CriticalPath critical_path(const std::vector<JoinedRecord>& records);

}  // namespace orrery::scenarios
