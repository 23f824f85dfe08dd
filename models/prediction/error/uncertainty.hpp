#pragma once
// How far a predicted step may be off, from how far predictions were off on the nearest published
// runs (evidence.hpp), and from curves that were borrowed or asked beyond their range.

#include <cstdint>

#include "models/prediction/error/evidence.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Step times that a measured one lies below in 10, 50 and 90 % of cases. p50 is the predicted
/// step: what a profile's runs took beyond their explained times is part of it
/// (Software::unexplained).
struct Uncertainty {
  Time p10{}, p50{}, p90{};
};

/// Each fallback curve whose share was measured on another GPU makes the interval this much wider.
/// Source  the runs of scenarios/validation/runs.csv: the median error of megatron-lm is 2.6, 3.8
///         and 4.9 % with 0, 1 and 2 fallback curves, that of megatron-deepspeed 2.7 and 4.3 % with
///         0 and 1
inline constexpr double widening_of_a_fallback_curve = 1.3;

/// widening_of_a_fallback_curve to the power of `fallbacks`.
double widening(std::int64_t fallbacks);

///   p10 = step e^-sqrt((w low)^2 + (1.28 s)^2),  p50 = step,  p90 the same with high and +
/// low, high  of the evidence;  w  widening(fallbacks)
/// s          of curves asked beyond their measured range (extrapolation.hpp) and of shares of peak
///            that were not measured (fallback_spread.hpp)
Uncertainty uncertainty_of(Time step, const Evidence& evidence, std::int64_t fallbacks,
                           double of_curves = 0);

}  // namespace orrery::models
