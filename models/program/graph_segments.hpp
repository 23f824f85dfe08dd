#pragma once
// Which operations of a block are captured in one CUDA graph and launched together. Pricing and
// executor both use this, so what is priced is what is captured.

#include <cstddef>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Operations `first` up to, but not including, `end`: one graph launch by the host.
struct GraphSegment {
  std::size_t first = 0, end = 0;

  friend bool operator==(GraphSegment, GraphSegment) = default;
};

/// The segments of a block of the Program, in order; none unless the Program has `graphs`, none
/// in blocks of the step (norm, optimizer, compression). A segment is as long as possible. It ends
/// - before an operation of another queue: collectives stay launches of their own,
/// - before an operation that waits for another queue, so that the queue waits before the graph;
///   an operation that the queue has already waited for does not count,
/// - before an operation for whose end the host waits, which is in no segment.
std::vector<GraphSegment> graph_segments(const Program& program, std::size_t block);

}  // namespace orrery::models
