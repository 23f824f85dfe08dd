#pragma once
// What a search says of its best plan: how much of its lead is luck, and how it stands to the
// fastest published runs on the same GPU.

#include <optional>
#include <string>

#include "models/prediction/published_errors.hpp"
#include "scenarios/search/plan_report.hpp"

namespace orrery::scenarios {

/// The highest share of the peak that published runs of models of this size reached on the
/// cluster's GPU with as many bits; nothing without three such runs.
std::optional<models::HighestMfu> highest_published(const PlanQuery& query);

/// Paragraphs for people. Empty where the best plan is to be taken as predicted.
std::string best_of_many(const PlanReport& report, const ReportOptions& options);

}  // namespace orrery::scenarios
