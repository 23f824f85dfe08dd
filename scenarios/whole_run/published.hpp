#pragma once
// Published trainings against predicted ones: GPU-hours over those of the steps alone, and whether
// the range of `orrery train --all-in` holds them, each operator left out of the fit.

#include <string>

#include "models/prediction/prediction.hpp"
#include "scenarios/search/workers.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Columns gpu_hours and alone_gpu_hours: hours that a run took, and those of its steps as
/// predicted when the row was recorded. A row that names model, cluster, software and plan is
/// predicted again.
bool holds_whole_runs(const Table& table);

/// What a row asks by model, cluster, plan, software and tokens.
struct RowQuestion {
  models::Question question;
  models::Prediction step;
  double tokens = 0;
};
/// Errors  InputError with file and line
RowQuestion question_of(const Row& row);

struct PublishedRunsReport {
  Json json;
  std::string text;
  bool stopped = false;
};
/// The prior is fitted to billed runs whose confidence is not low:
///   ln(published / alone) ~ normal(mean, deviation)
/// Errors  InputError with file and line
PublishedRunsReport compare_whole_runs(const Table& table, const Workers& workers);

}  // namespace orrery::scenarios
