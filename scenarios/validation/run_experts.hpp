#pragma once
// Runs of models with experts: what their lines leave open comes from the published configuration
// of the same widths, by what the line states and never by a name, so that a renamed model has the
// same answer.

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

/// What goes with experts where neither the line nor a recipe says it: sequence parallelism and
/// expert tensor parallelism as in Megatron-Core.
void settle_experts(models::Plan& plan, std::vector<std::string>& assumptions);

}  // namespace orrery::scenarios
