#pragma once
// A prediction as JSON (design: `orrery simulate --json`), and as text for people.

#include <string>

#include "scenarios/scenario.hpp"

namespace orrery::scenarios {

/// Every member that `simulate --json` promises; what is missing is null. The same bytes on every
/// run but for `wall_time_s`.
Json to_json(const models::Question& question, const models::Prediction& prediction,
             double load_seconds);

/// The report: a table, the waterfall from ideal to predicted, memory by stage, days and dollars
/// for `tokens`, the published figure beside the predicted one, assumptions.
struct ReportOptions {
  bool explain = false;
  std::optional<double> tokens;
  std::optional<Published> published;
};
std::string report(const models::Question& question, const models::Prediction& prediction,
                   const ReportOptions& options);

/// Writes the predicted step as a Chrome trace: one track per queue, one rank per class.
enum class TraceDetail : std::uint8_t { instructions, operations };
void write_trace(const models::Prediction& prediction, TraceDetail detail,
                 const std::string& path);

}  // namespace orrery::scenarios
