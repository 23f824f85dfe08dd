#include "scenarios/whole_run/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/report/style.hpp"
#include "scenarios/scenario/tokens.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/mean_and_spread.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

constexpr double deviations_to_p90 = 1.2815515655446004;  // of a normal variable

struct PublishedRun {
  std::string name, operator_name, source, plan_is;
  std::int64_t year = 0;
  bool billed = false, certain = false;  // hours of steps alone are not billed
  double hours = 0, alone = 0;
  bool simulated = false;
  double low = 0, middle = 0, high = 0;  // of the prior without this operator, in hours

  double logarithm() const { return std::log(hours / alone); }
  bool scored() const { return billed && certain; }
  bool inside() const { return hours >= low && hours <= high; }
};

/// GPU-hours of the steps, of a row that states its question.
std::optional<double> hours_alone(const Row& row) {
  if (row.text("model").empty()) return std::nullopt;
  const RowQuestion asked = question_of(row);
  return asked.tokens / asked.step.tokens_per_second / 3600 *
         static_cast<double>(asked.question.plan.gpus());
}

PublishedRun read(const Row& row) {
  PublishedRun run{.name = std::string{row.text("run")},
                   .operator_name = std::string{row.text("operator")},
                   .source = std::string{row.text("source")},
                   .plan_is = std::string{row.text("plan_is")},
                   .year = row.integer("year").value_or(0),
                   .billed = row.text("hours") != "steps",
                   .certain = row.text("confidence") != "low"};
  const auto hours = row.number("gpu_hours");
  if (!hours || *hours <= 0) row.fail_expected("gpu_hours", "hours above 0");
  run.hours = *hours;
  const std::optional<double> predicted = hours_alone(row);
  const auto recorded = row.number("alone_gpu_hours");
  run.simulated = predicted.has_value();
  if (!predicted && (!recorded || *recorded <= 0)) {
    row.fail_expected("alone_gpu_hours", "hours above 0, or a model, cluster, software and plan");
  }
  run.alone = predicted.value_or(recorded.value_or(0));
  return run;
}

MeanAndSpread fit(const std::vector<PublishedRun>& runs, const std::string& without = "") {
  std::vector<double> logarithms;
  for (const PublishedRun& each : runs) {
    const bool left_out = !without.empty() && each.operator_name == without;
    if (each.scored() && !left_out) logarithms.push_back(each.logarithm());
  }
  return logarithms.size() > 1 ? mean_and_spread(logarithms)
                               : MeanAndSpread{published_runs.mean, published_runs.deviation};
}

void take_ranges(std::vector<PublishedRun>& runs) {
  for (PublishedRun& each : runs) {
    const MeanAndSpread others = fit(runs, each.operator_name);
    const double spread = deviations_to_p90 * others.deviation;
    each.low = each.alone * std::exp(others.mean - spread);
    each.middle = each.alone * std::exp(others.mean);
    each.high = each.alone * std::exp(others.mean + spread);
  }
}

struct Summary {
  std::size_t scored = 0, inside = 0, simulated = 0;
  MeanAndSpread fitted;
  double p10 = 0, p50 = 0, p90 = 0;
};

Summary summary_of(const std::vector<PublishedRun>& runs) {
  Summary summary{.fitted = fit(runs)};
  std::vector<double> ratios;
  for (const PublishedRun& each : runs) {
    summary.simulated += each.simulated ? 1 : 0;
    if (!each.scored()) continue;
    ++summary.scored;
    summary.inside += each.inside() ? 1 : 0;
    ratios.push_back(each.hours / each.alone);
  }
  if (ratios.empty()) return summary;
  summary.p10 = quantile(ratios, 0.1);
  summary.p50 = quantile(ratios, 0.5);
  summary.p90 = quantile(ratios, 0.9);
  return summary;
}

double inside_percent(const Summary& summary) {
  return summary.scored == 0
             ? 0
             : 100 * static_cast<double>(summary.inside) / static_cast<double>(summary.scored);
}

Json json_of(const std::vector<PublishedRun>& runs, const Summary& summary) {
  Json rows = Json::array();
  for (const PublishedRun& each : runs) {
    rows.push_back({{"run", each.name},
                    {"scored", each.scored()},
                    {"plan_is", each.plan_is},
                    {"published_gpu_hours", each.hours},
                    {"alone_gpu_hours", each.alone},
                    {"predicted_now", each.simulated},
                    {"ratio", each.hours / each.alone},
                    {"gpu_hours", {{"p10", each.low}, {"p50", each.middle}, {"p90", each.high}}},
                    {"inside", each.inside()}});
  }
  return {{"kind", "whole runs"},
          {"rows", runs.size()},
          {"simulated", summary.simulated},
          {"scored", summary.scored},
          {"fit", {{"ln_mean", summary.fitted.mean}, {"ln_deviation", summary.fitted.deviation}}},
          {"ratio", {{"p10", summary.p10}, {"p50", summary.p50}, {"p90", summary.p90}}},
          {"interval", {{"rows", summary.scored}, {"inside_pct", inside_percent(summary)}}},
          {"runs", rows}};
}

std::string text_of(const std::vector<PublishedRun>& runs, const Summary& summary) {
  TextTable table{{"<run", "<plan", "published", "steps alone", "ratio", "p10", "p90", "<"}};
  std::vector<const PublishedRun*> order;
  for (const PublishedRun& each : runs) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [](const PublishedRun* each) { return each->logarithm(); });
  for (const PublishedRun* each : order) {
    const char* note = !each->billed    ? "hours of steps"
                       : !each->certain ? "not certain"
                       : each->inside() ? ""
                                        : "outside";
    table.add({each->name, each->plan_is, fmt::format("{:.0f}", each->hours),
               fmt::format("{:.0f}{}", each->alone, each->simulated ? "" : "*"),
               fmt::format("{:.2f}", each->hours / each->alone), fmt::format("{:.0f}", each->low),
               fmt::format("{:.0f}", each->high), note});
  }
  return fmt::format(
             "{} published trainings, GPU-hours\n{} scored: billed hours over those of the steps "
             "alone {:.2f} to {:.2f}, median {:.2f}\n  ln {:.3f}, deviation {:.3f}: the prior of "
             "orrery train --all-in\n{} of {} inside p10 to p90 with their operator left out of "
             "the fit, {:.0f} % (80 % expected)\n\n",
             runs.size(), summary.scored, summary.p10, summary.p90, summary.p50,
             summary.fitted.mean, summary.fitted.deviation, summary.inside, summary.scored,
             inside_percent(summary)) +
         table.text(false) +
         "\n* recorded: the catalogue has no such model, or the plan is of another build\n";
}

}  // namespace

RowQuestion question_of(const Row& row) {
  const auto tokens = parse_tokens(row.text("tokens"));
  if (!tokens) row.fail_expected("tokens", tokens_form);
  const auto part = [&](const char* column) { return std::string{row.text(column)}; };
  const Scenario scenario = Scenario::load(std::nullopt, {.model = part("model"),
                                                          .cluster = part("cluster"),
                                                          .plan = part("plan"),
                                                          .software = part("software")});
  RowQuestion asked{.question = scenario.question(), .step = {}, .tokens = *tokens};
  asked.step = models::predict(asked.question);
  return asked;
}

bool holds_whole_runs(const Table& table) {
  return table.has("gpu_hours") && table.has("alone_gpu_hours");
}

PublishedRunsReport compare_whole_runs(const Table& table, const Workers& workers) {
  table.require({"run", "operator", "gpu_hours", "alone_gpu_hours"});
  std::vector<PublishedRun> runs(table.size());
  const bool all = workers.work_through(table.size(),
                                        [&](std::size_t i, unsigned) { runs[i] = read(table[i]); });
  if (!all) return {.json = nullptr, .text = {}, .stopped = true};
  take_ranges(runs);
  const Summary summary = summary_of(runs);
  return {.json = json_of(runs, summary), .text = text_of(runs, summary)};
}

}  // namespace orrery::scenarios
