#pragma once
// Does a plan fit in memory, given how far predicted peaks were off on runs whose peak was
// measured? Leaves out what a stack's allocator does when memory is short: it may be slow long
// before it fails.

#include <cstdint>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::models {

/// `tight`: it fits as predicted, with less to spare than was asked for. `doubtful`: it does not as
/// predicted, and would with the least that such a plan may need.
enum class Fit : std::uint8_t { yes, tight, doubtful, no };
std::string_view name(Fit fit);

/// Share of a GPU's memory that a plan leaves free to count as `Fit::yes` where no question says:
/// the median error of predicted peaks (models/prediction/published_errors.hpp).
double usual_headroom();

/// What a plan needs at its peak, as predicted and within which bounds.
struct MemoryNeed {
  Bytes least{}, predicted{}, most{};
};

/// Weights, gradients, optimizer state and context are a matter of counting. What activations,
/// transfers and kernels hold depends on the stack's allocator and on what its versions keep.
///   least = held + 0.5 dynamic,  most = held + 1.3 dynamic
/// Source  peak_memory_gb of the runs in scenarios/validation/runs.csv that are not set aside:
///         about the 10th and the 90th percentile of (measured - held) / dynamic; the lower one was
///         taken at 0.5, not 0.6, with these runs in view
MemoryNeed memory_need(Bytes held, Bytes dynamic);

///   no        least > available
///   doubtful  least <= available < predicted
///   tight     available (1 - headroom) < predicted <= available
///   yes       predicted <= available (1 - headroom)
Fit fit_of(const MemoryNeed& needed, Bytes available, double headroom);

/// Share of published runs whose measured peak was at most available / needed times the predicted
/// one; 1 and 0 beyond the largest errors.
double fit_probability(Bytes needed, Bytes available);

}  // namespace orrery::models
