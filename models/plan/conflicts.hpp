#pragma once
// Conflicts: why a plan cannot be lowered, by itself, for its model or on its cluster. Whether it
// fits into memory is left out.

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// A conflict inside a plan or between plan, model and cluster: the JSON pointer of the field that
/// is wrong (relative to the plan; empty if it is the model) and one sentence that says why.
struct Conflict {
  std::string pointer;  // "/tensor"
  std::string problem;  // "tensor 3 does not divide the model's 32 attention heads"
};

/// Limits on the micro-batches of one replica's step, and on the chunk forwards of all stages
/// together: instruction lists grow with both, and evaluation visits every instruction.
inline constexpr std::int64_t most_micro_batches = std::int64_t{1} << 16;
inline constexpr std::int64_t most_forwards = std::int64_t{1} << 21;

/// Every conflict, in a fixed order; empty when the plan can be lowered. Not a conflict: a
/// vocabulary that `tensor` does not divide (it is padded), more tensor ranks than key-value heads
/// as long as one is a multiple of the other (heads are replicated).
std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus,
                                const Registry<Schedule>& schedules = builtin_schedules());

}  // namespace orrery::models
