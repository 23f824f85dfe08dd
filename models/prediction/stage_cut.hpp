#pragma once
// Cuts stages by time rather than by layers: which consecutive layers each chunk of a pipeline
// holds, so that the longest chunk is as short as it can be. Times are those of forward and
// backward blocks as they are priced, embedding and head included. Leaves out transfers, gradient
// reductions, the optimizer, and memory.

#include <cstdint>
#include <span>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// The optimum of contiguous partitions: first the least longest part, then, of those, the least
/// sum of squares, so that the other parts are alike.
///   longest(k, n) = min over j of max(longest(k - 1, j), sum of the layers from j to n)
/// by dynamic programming in O(parts n^2).
/// `first` and `last` are added to the first and the last part; every part has a layer.
/// Errors  fewer layers than parts: ContractError
std::vector<std::int64_t> cut_by_time(std::span<const Time> layers, std::int64_t parts, Time first,
                                      Time last);

/// The cut for a question whose plan has `layers_by_time`.
struct StageCut {
  std::vector<std::int64_t> layers;  // of each chunk
  Time longest{}, even{};            // the longest chunk, with this cut and with one by layers
};
StageCut cut_stages(const Question& question);

}  // namespace orrery::models
