#pragma once
// Cautions about the best plan of a search: how much of its lead is a favourable error, and how its
// MFU compares with the fastest published runs on the same GPU.

#include <optional>
#include <string>

#include "models/prediction/error/published_errors.hpp"
#include "scenarios/search/plan_report.hpp"

namespace orrery::scenarios {

/// The highest MFU of published runs of models of this size on the cluster's GPU at as many bits;
/// nothing with fewer than three such runs.
std::optional<models::HighestMfu> highest_published(const PlanQuery& query);

/// The cautions as paragraphs. Empty if the best plan can be taken as predicted.
std::string best_of_many(const PlanReport& report, const ReportOptions& options);

}  // namespace orrery::scenarios
