#pragma once
// Lower bounds of a question's step: if no transfer shared a link with anything, and by the queue
// of collectives between replicas alone.

#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// No step with traffic on links is shorter than it.
/// Errors  as estimate
Time step_without_sharing(const Question& question);

/// For how long the collectives of a rank class's joint instructions (reductions, sums of replicas,
/// norm, gathers) occupy its queue comm:dp. It takes them one after another, so each is a path of
/// the Program:
///   all          = carried + sum of (lead + duration + trail) - the last one's trail
///   after_first  = the same without what is carried and without the first one's lead
/// all          from the beginning of the step
/// after_first  from when the input of the first is ready; 0 where that is no gradient reduction
struct JointTimes {
  Time all{}, after_first{};
  friend bool operator==(const JointTimes&, const JointTimes&) = default;
};

/// An estimate, and its joint collectives by rank class; none where the plan does not fit. Two
/// plans whose joints are the same have the same times of them, whatever their blocks take.
struct EstimateWithJoints {
  Estimate estimate;
  std::vector<JointTimes> joints;
};
/// Errors  as estimate
EstimateWithJoints estimate_with_joints(const Question& question);

}  // namespace orrery::models
