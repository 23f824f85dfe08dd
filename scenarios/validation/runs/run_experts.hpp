#pragma once
// Models and plans of published runs with experts. What a run does not state is taken from the
// published configuration with the same sizes, matched by stated sizes and never by name, so that a
// renamed model has the same prediction.

#include <string>
#include <string_view>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "scenarios/validation/runs/measured_run.hpp"

namespace orrery::scenarios {

/// The group in which these runs are scored.
inline constexpr std::string_view expert_runs = "mixture of experts";

bool has_experts(const MeasuredRun& run);

/// Why the run's model cannot be built; empty if it can.
std::string missing_of_experts(const MeasuredRun& run);

/// The catalogue's model of the same hidden size, heads and experts, with the layers and the
/// vocabulary of the run; else one with such experts on every layer.
models::Model expert_model_of(const MeasuredRun& run, std::vector<std::string>& assumptions);

/// Defaults for runs with experts where neither the line nor a recipe states them: sequence
/// parallelism and expert tensor parallelism as in Megatron-Core.
void settle_experts(models::Plan& plan, std::vector<std::string>& assumptions);

}  // namespace orrery::scenarios
