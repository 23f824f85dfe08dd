#pragma once
// What CUDA graphs hold of a block: which operations are launched together. Pricing and executor
// both ask here, so what is priced is what is captured.

#include <cstddef>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Operations `first` up to, but not including, `end`: one launch of the host.
struct Stretch {
  std::size_t first = 0, end = 0;

  friend bool operator==(Stretch, Stretch) = default;
};

/// The stretches of a block of the Program, in order; none unless the Program has `graphs`, none
/// in blocks of the step (norm, optimizer, compression). A stretch is as long as it can be without
/// - an operation of another queue: collectives stay launches of their own,
/// - a wait for one: what waits begins a stretch, so that the queue waits before the graph begins;
///   what an earlier operation of the queue has waited for is there,
/// - an operation on whose end the host waits.
std::vector<Stretch> stretches(const Program& program, std::size_t block);

}  // namespace orrery::models
