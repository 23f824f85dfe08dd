#include "scenarios/search/tried_report.hpp"

#include <fmt/format.h>

#include <map>

#include "models/plan/fields.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/search/space/unsearched.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// The fields that no plan of the search differs in, by reason.
std::string not_tried(const PlanReport& report, const ReportOptions& options) {
  const bool none = report.best.empty();
  const models::Plan& shown = none ? report.query.fixed : report.best.front().candidate.placed.plan;
  std::map<Unsearched, std::string> keys;
  for (const UnsearchedField& each : unsearched(report.query, shown)) {
    std::string& list = keys[each.why];
    list += fmt::format("{}{}", list.empty() ? "" : ", ", each.key);
  }
  std::string text;
  for (const auto& [why, list] : keys) {
    text += paragraph(fmt::format("not varied ({}): {}", words_of(why), list), 2, options);
  }
  return text;
}

}  // namespace

std::string tried_text(const PlanReport& report, const ReportOptions& options) {
  const PlanAnswer& answer = report.answer;
  std::string text = heading("What was tried", options);
  const std::string slower =
      answer.passed_over == 0 ? ""
                              : fmt::format(", {} are worse by a lower bound", answer.passed_over);
  text += paragraph(
      fmt::format(
          "{} plans: {} fit, {} of them tightly, {} do not ({} by a "
          "lower bound of their memory){}; {} "
          "more combinations are ruled out by model, stack or schedule{}",
          answer.considered, answer.fits(), answer.tight(), answer.too_large,
          answer.too_large_by_sizes, slower, answer.conflicting,
          answer.too_slow == 0 ? "" : fmt::format("; {} miss the deadline", answer.too_slow)),
      2, options);
  text += not_tried(report, options);
  if (answer.nearest_miss && !answer.fitting.empty()) {
    const models::OutOfMemory& found = answer.nearest_miss->out_of_memory;
    text += paragraph(fmt::format("nearest miss: {}: rank {} needs {}, available: {}",
                                  models::title_of(answer.nearest_miss->placed.plan), found.rank,
                                  format(found.needed), format(found.available)),
                      2, options);
  }
  return text;
}

}  // namespace orrery::scenarios
