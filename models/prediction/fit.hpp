#pragma once
// Does a plan fit in memory, given how far predicted peaks were off on runs whose peak was
// measured? Leaves out what a stack's allocator does when memory is short: it may be slow long
// before it fails.

#include <cstdint>
#include <string_view>

#include "models/prediction/error/evidence.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// `tight`: the predicted peak fits, with less to spare than was asked for. `doubtful`: the
/// predicted peak does not fit, but the least that such a plan may need does.
enum class Fit : std::uint8_t { yes, tight, doubtful, no };
std::string_view name(Fit fit);

/// Default headroom, the share of a GPU's memory that a plan must leave free to count as
/// `Fit::yes`: the median error of predicted peaks (models/prediction/error/published_errors.hpp).
double usual_headroom();

/// Peak memory of a plan: predicted, and its bounds.
struct MemoryNeed {
  Bytes least{}, predicted{}, most{};
};

/// Weights, gradients, optimizer state and context (`held`) are counted. What activations,
/// transfers and kernels hold (`dynamic`) depends on the stack's allocator and on what its versions
/// keep.
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

/// Peaks that a measured one lies below in 10 and 90 % of cases.
struct PeakRange {
  Bytes p10{}, p90{};
};
PeakRange peak_range(Bytes predicted, const Evidence& evidence);

/// Chance that a peak is at most `available`: its logarithm is normal around the predicted one,
/// with the evidence's deciles below and above.
double fit_probability(Bytes needed, Bytes available, const Evidence& evidence);

/// The verdict by bounds next to that chance: what the bounds rule out is `no` at less than one
/// chance in ten; of a plan that nobody stated, at less than one in ten thousand.
Fit weighed(Fit by_bounds, double probability, bool plan_is_assumed);

}  // namespace orrery::models
