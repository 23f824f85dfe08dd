#pragma once
// Runs of models with experts: what their lines leave open comes from the published configuration
// of the same widths and from the recipe that the run's stack ships for it (recipes.csv), both by
// what the line states and never by a name, so that a renamed model has the same answer.

#include <string>
#include <string_view>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "scenarios/validation/measured_run.hpp"

namespace orrery::scenarios {

/// The group in which they are scored.
inline constexpr std::string_view expert_runs = "mixture of experts";

bool has_experts(const MeasuredRun& run);

/// What of its model is missing; empty: nothing.
std::string missing_of_experts(const MeasuredRun& run);

/// The catalogue's model of the same hidden size, heads and experts, with the layers and the
/// vocabulary of the run; else one with such experts on every layer.
models::Model expert_model_of(const MeasuredRun& run, std::vector<std::string>& assumptions);

/// Dispatcher, expert tensor parallelism, capacity, overlap and fused permutation: of the recipes
/// for this architecture that the run's stack, its parent or its children had released by then,
/// those that agree, as far as any does, on GPU, expert degree, tensor and pipeline degrees (or
/// else the stack itself) and virtual stages; the last of them. Without one, what Megatron-Core
/// does unasked.
void follow_recipe(const MeasuredRun& run, models::Plan& plan,
                   std::vector<std::string>& assumptions);

}  // namespace orrery::scenarios
