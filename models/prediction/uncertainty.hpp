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

/// How far such a plan may be off on this stack. Of ZeRO-2 and ZeRO-3 as published runs of them
/// were, on this stack or else on all (models/prediction/published_errors.hpp); otherwise the
/// profile's own residuals, and without them those of `generic`: how far a stack is off that no run
/// has fitted. Its `of` says whose runs they are.
Residuals residuals_of(const Software& software, const Plan& plan);

///   p10 = step e^(w r10),  p50 = step,  p90 = step e^(w r90)
/// r10, r90  the residuals' quantiles;  w  widening(borrowed)
Uncertainty uncertainty_of(Time step, const Residuals& residuals, std::int64_t borrowed);

}  // namespace orrery::models
