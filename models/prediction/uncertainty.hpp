#pragma once
// How far a predicted step may be off, from how far predictions of the same stack were off on runs
// that its fit had not seen. Leaves out what those runs had in common with each other and not with
// this one: another kind of model or network may be further off.

#include <cstdint>

#include "hardware/cluster.hpp"
#include "models/software/software.hpp"
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

/// How far predictions of such a plan on this stack may be off. For ZeRO-2 and ZeRO-3 as far as
/// those of published runs of them, on this stack or else on all
/// (models/prediction/published_errors.hpp); otherwise the profile's own residuals, and without
/// them those of `generic`: how far off a stack is to which no run was fitted. Its `of` says whose
/// runs they are.
Residuals residuals_of(const Software& software, const Plan& plan);

/// How far a question lies from the runs that its stack's numbers were found on.
enum class Distance : std::uint8_t {
  same_site,      // or nothing says where the runs were measured
  another_site,   // the cluster names none of the sites
  another_era,    // the year is not one of theirs, whatever the site
  unseen_stack,   // no run of the stack, but of stacks that it shares code with
  unknown_stack,  // neither
};
Distance distance_of(const Software& software, const hardware::Cluster& cluster);
std::string_view name(Distance distance);

/// A stack's own residuals, widened by the distance between those runs and the question. With
/// standard deviations s of ln(measured / predicted): 0.05 of a run, 0.07 of a site, 0.06 of an
/// era, 0.07 of a stack whose relatives are known,
///   seen    p10 = -sqrt(r10^2 + 1.28^2 sum s^2),  p90 = sqrt(r90^2 + 1.28^2 sum s^2)
///   unseen  p10 = -0.7 sqrt(sum s^2),             p90 = 1.7 sqrt(sum s^2)
/// for an unknown stack those of `generic`, as they are.
/// Source  runs of scenarios/validation/runs.csv with their source, year or stack left out
///         (`orrery validate --leave-out`): stacks that no run was fitted to are slower than
///         predicted, hardly ever faster
Residuals at_distance(const Residuals& own, Distance distance);

/// residuals_of(software, plan), widened by the distance of the cluster where gradients are not
/// sharded.
Residuals residuals_of(const Software& software, const Plan& plan,
                       const hardware::Cluster& cluster);

///   p10 = step e^-sqrt((w r10)^2 + (1.28 s)^2),  p50 = step,  p90 the same with r90 and +
/// r10, r90  the residuals' quantiles;  w  widening(fallbacks)
/// s         of curves asked beyond their measured range (extrapolation.hpp) and of shares of peak
///           that were not measured (fallback_spread.hpp)
Uncertainty uncertainty_of(Time step, const Residuals& residuals, std::int64_t fallbacks,
                           double of_curves = 0);

}  // namespace orrery::models
