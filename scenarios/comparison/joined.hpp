#pragma once
// Trace records with the fields that joining needs: rank, stage, path, and the duration without
// waiting for peers.

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
  std::string_view path;         // the id without the rank, equal on all ranks of a stage
  std::string block, operation;  // if recorded by operation; the block without its layer
  bool upwards = false;          // a transfer of a gradient to the previous stage
  bool launch = false;           // the host's part of an operation
  Time start{}, duration{};      // without waiting after take_out_waiting()
};

/// The records in the order of the trace. Records whose id is not `rank/...` are ignored.
std::vector<JoinedRecord> records_of(const Trace& trace);

/// Removes waiting for peers: moves the starts of collectives and receives to when the peers are
/// ready. Returns the time removed, summed over all ranks.
Time take_out_waiting(std::vector<JoinedRecord>& records);

CriticalPath critical_path(const std::vector<JoinedRecord>& records);

}  // namespace orrery::scenarios
