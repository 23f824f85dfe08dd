#pragma once
// A predicted step and a measured one, joined operation by operation. Both traces name an operation
// by its path, `rank/instruction/block.layer/operation`; a prediction holds one rank of each stage,
// so a measured rank that it lacks is joined to the one of its stage.
//
// Left out: waiting. Inside a collective or receive a measured rank also waits for its peers, a
// predicted one does not: the wait is taken out of the operation and counted as a class of its own.
//   collective  every rank's duration is the shortest that a rank had
//   receive     begins no earlier than the k-th send that it meets
// Launches of the host are compared only where both traces have them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::scenarios {

/// Operations of one class, summed over the measured ranks.
struct ClassComparison {
  std::string name;
  std::int64_t count = 0;
  Time predicted{}, measured{};
};

/// One operation, summed over the instructions, micro-batches, layers and ranks that ran it.
struct OperationComparison {
  std::string block, name, kind;  // "layer.forward", "qkv", "gemm"
  std::int64_t count = 0;
  Time predicted{}, measured{};
};

/// The chain of records that ends last, walked backwards: before each record stands the one that
/// ended last before its start; gaps between them are idle.
struct CriticalPath {
  struct Share {
    std::string kind;
    Time time{};
  };
  std::vector<Share> parts;        // largest first, "idle" among them; their sum is the step
  std::vector<std::string> chain;  // paths without the rank, first to last
};

/// A stage of the lane of the step's input, of the rank for which it took longest; "wait" is what
/// the step waited.
struct InputComparison {
  std::string name;  // "read", "decode", "copy", "wait"
  std::optional<Time> predicted, measured;
};

struct Comparison {
  Time predicted{}, measured{};  // of the step: first start to last end
  std::int64_t ranks = 0;        // measured
  std::vector<ClassComparison> classes;
  Time waiting{};                            // measured, over all ranks
  std::vector<InputComparison> input;        // empty: neither trace has a lane of input
  std::vector<OperationComparison> largest;  // differences |measured - predicted|, at most ten
  std::vector<std::string> only_predicted, only_measured;  // ids without a partner
  CriticalPath predicted_path, measured_path;
  std::optional<std::string> paths_part_at;  // the first path in which the chains differ
  std::optional<Bytes> predicted_peak, measured_peak;

  std::size_t unmatched() const { return only_predicted.size() + only_measured.size(); }
};

/// Errors  traces of different detail (one has instructions, one operations): InputError naming
///         `measured_name`
Comparison compare(const Trace& predicted, const Trace& measured, const std::string& measured_name);

CriticalPath critical_path(const Trace& trace);

/// Members as `orrery compare --json` prints them; ratio is predicted / measured, null without a
/// measured time.
Json to_json(const Comparison& comparison);
std::string comparison_report(const Comparison& comparison, bool colour);

}  // namespace orrery::scenarios
