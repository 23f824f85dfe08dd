#pragma once
// For a plan that does not fit in memory, or may not: which changes of it would fit.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario/changed_plan.hpp"
#include "sim/quantity.hpp"

namespace orrery::scenarios {

/// Changes of a plan, and what it then needs.
struct FittingPlan {
  PlanChanges changes;
  Bytes memory{};  // of the fullest stage
  Time step{};     // by static evaluation
};

struct MemoryAdvice {
  /// The fastest plans that fit, fastest first. They differ from the asked one in one field, or, if
  /// no such plan fits, in two, or else in as many as are tried.
  std::vector<FittingPlan> fitting;
  std::optional<FittingPlan> least;  // where none fits, what needs least, with no step
  bool empty() const { return fitting.empty() && !least; }
};

/// Tries what saves memory and leaves the result of training unchanged: smaller micro-batches,
/// higher ZeRO stages and degrees, sequence parallelism, recomputation, no logits, the optimizer in
/// the host's memory. Empty where the plan fits.
MemoryAdvice memory_advice(const models::Question& question, models::Fit fit);

/// "Would fit: zero=3 (65.1 GiB, 12.3 s); recompute=full (52.0 GiB, 14.1 s)"; empty without advice.
std::string text_of(const MemoryAdvice& advice);
/// `[{changes{field: value}, peak_memory_bytes, step_time_s}]` of the plans that fit.
Json to_json(const MemoryAdvice& advice);

}  // namespace orrery::scenarios
