#pragma once
// Lower bounds of a question's step: if no transfer shared a link with anything, and by the queue
// of collectives between replicas alone.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// No step with traffic on links is shorter than it.
/// Errors  as estimate
Time step_without_sharing(const Question& question);

/// An estimate, and for how long the collectives of its step's joint instructions (reductions,
/// sums of replicas, norm, gathers) occupy the queue comm:dp of the rank that is busiest with them.
///   t = carried + sum over joints of (lead + duration + trail) - the last one's trail
/// It is a path of the Program: the queue takes them one after another. 0 where the plan does not
/// fit. Two plans whose joints are the same have the same t, whatever their blocks take.
struct EstimateWithJoints {
  Estimate estimate;
  Time joints{};
};
/// Errors  as estimate
EstimateWithJoints estimate_with_joints(const Question& question);

}  // namespace orrery::models
