#pragma once
// How far a predicted step may be off, from how far predictions of the same stack were off on runs
// that its fit had not seen. Leaves out what those runs had in common with each other and not with
// this one: another kind of model or network may be further off.

#include <cstdint>

#include "models/software/software.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Step times that a measured one lies below in 10, 50 and 90 % of cases.
struct Uncertainty {
  Time p10{}, p50{}, p90{};
};

/// Each borrowed curve makes the interval this much wider.
/// Source  the runs of scenarios/validation/runs.csv: the median error of megatron-lm is 2.6, 3.8
///         and 4.9 % with 0, 1 and 2 borrowed curves, that of megatron-deepspeed 2.7 and 4.3 % with
///         0 and 1
inline constexpr double widening_of_a_borrowed_curve = 1.3;

/// widening_of_a_borrowed_curve to the power of `borrowed`.
double widening(std::int64_t borrowed);

/// The profile's own residuals; without them those of `generic`: how far a stack is off that nobody
/// has fitted.
Residuals residuals_of(const Software& software);

///   p10 = step e^(w r10),  p50 = step,  p90 = step e^(w r90)
/// r10, r90  the residuals' quantiles;  w  widening(borrowed)
Uncertainty uncertainty_of(Time step, const Software& software, std::int64_t borrowed);

}  // namespace orrery::models
