#pragma once
// The parts of a plan search's report on what was tried, what was not, and what nearly fits.

#include <string>

#include "scenarios/search/plan_report.hpp"

namespace orrery::scenarios {

/// How many plans were tried, which fields were not varied, and the nearest miss.
std::string tried_text(const PlanReport& report, const ReportOptions& options);

}  // namespace orrery::scenarios
