#include "scenarios/search/best_of_many.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/precision_formats.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Winner's curse: the step that plan 1 takes on average is longer than predicted, because the best
/// of many predictions is probably one with a favourable error.
std::string winners_curse(const ExpectedStep& expected, Time step, const ReportOptions& options) {
  if (expected.step <= step) return {};
  const double more = 100 * (ratio(expected.step, step) - 1);
  return "\n" +
         paragraph(
             fmt::format(
                 "Expect a step of {} for plan 1, {:.1f} % more than predicted: {}. Measure two or "
                 "three plans before a long run.",
                 step_part(expected.step, step), more,
                 expected.rivals < 2
                     ? std::string{"stacks without measured runs are usually slower than predicted"}
                     : fmt::format("it is the best of {} ways to cut the model with similar "
                                   "predictions, and probably predicted too fast",
                                   expected.rivals)),
             2, options);
}

std::string peak_of(const PlanQuery& query) {
  return models::size_and_peak(query.model.parameters, query.cluster.gpu().name,
                               models::compute_dtype(query.precision));
}

/// A caution if the best plan's MFU is above that of all published runs.
std::string above_published(const PlanReport& report, const ExpectedStep& expected,
                            const ReportOptions& options) {
  const auto published = highest_published(report.query);
  const models::Estimate& best = report.answer.fitting.front().figures();
  if (!published || best.mfu <= published->mfu) return {};
  const models::Software& software = report.query.software;
  const double likely = best.mfu / std::max(1.0, ratio(expected.step, best.step));
  return "\n" +
         paragraph(
             fmt::format(
                 "The MFU of plan 1, {:.1f} %, is above those of all {} published runs of "
                 "{}, at most {:.1f} % ({}). It is the best of {} plans, and those runs "
                 "tried only a few{}. Expect {:.1f} %.",
                 100 * best.mfu, published->rows, peak_of(report.query), 100 * published->mfu,
                 published->run, report.answer.fits(),
                 models::is_fitted(software) ? "" : "; its profile is not of a measured stack",
                 100 * likely),
             2, options);
}

}  // namespace

std::optional<models::HighestMfu> highest_published(const PlanQuery& query) {
  const auto& known = models::published_errors().highest_mfu;
  const auto found = known.find(peak_of(query));
  if (found == known.end()) return std::nullopt;
  return found->second;
}

std::string best_of_many(const PlanReport& report, const ReportOptions& options) {
  const ExpectedStep expected = expected_of(report.answer, report.objective);
  const Time step = report.answer.fitting.front().figures().step;
  return winners_curse(expected, step, options) + above_published(report, expected, options);
}

}  // namespace orrery::scenarios
