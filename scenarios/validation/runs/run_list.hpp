#pragma once
// Runs of models that are given as a list of operations: the row names the list, by the catalogue's
// name, one of the list's aliases, or a path.

#include <optional>
#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/validation/runs/measured_run.hpp"

namespace orrery::scenarios {

/// Is a row's model a list of operations? Its sizes are then the list's.
bool names_list(const MeasuredRun& run);
models::Model list_model_of(const MeasuredRun& run);
/// Replicas on all GPUs, with the row's batches and precision.
/// Errors  a global batch that the GPUs do not divide, where no micro-batch is stated: InputError
models::Plan list_plan_of(const MeasuredRun& run, const models::Model& model,
                          std::vector<std::string>& assumptions);
/// What such a row must state and does not; empty: nothing.
std::string missing_of_list(const MeasuredRun& run);

}  // namespace orrery::scenarios
