#pragma once
// What is wrong with a plan: by itself, for its model, on its cluster.

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// A conflict inside a plan or between plan, model and cluster: the pointer of the field that is
/// wrong (relative to the plan; empty when it is the model) and one clear sentence.
struct Conflict {
  std::string pointer;  // "/tensor"
  std::string problem;  // "tensor 3 does not divide the model's 32 attention heads"
};

/// The most micro-batches of one replica's step, and the most times that all stages together run a
/// chunk forward: a step's list of instructions grows with both, and is gone through one by one.
inline constexpr std::int64_t most_micro_batches = std::int64_t{1} << 16;
inline constexpr std::int64_t most_forwards = std::int64_t{1} << 21;

/// Every conflict, in a fixed order; empty when the plan can be lowered. Not a conflict: a
/// vocabulary that `tensor` does not divide (it is padded), more tensor ranks than key-value heads
/// as long as one is a multiple of the other (heads are replicated).
std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus,
                                const Registry<Schedule>& schedules = builtin_schedules());

}  // namespace orrery::models
