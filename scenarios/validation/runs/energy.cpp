#include "scenarios/validation/runs/energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "models/prediction/power.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/scenario/tokens.hpp"
#include "scenarios/whole_run/published.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

struct EnergyRow {
  std::string run, scope, note;
  bool hours_published = false;
  double hours = 0, watts = 0, measured = 0, predicted = 0;  // MWh
  double step_hours = 0;                                     // of the predicted steps alone
  double least_hours = 0;  // with which the GPUs, at their board power, use what was measured

  double error() const { return 100 * (predicted / measured - 1); }
  /// Hours over those of steps alone: published ones, or those of the measured energy at the
  /// predicted power.
  double stretch() const {
    return (hours_published ? hours : hours * measured / predicted) / step_hours;
  }
  bool like_published_runs() const {
    return stretch() >= published_runs.p10 && stretch() <= published_runs.p90;
  }
};

EnergyRow read_energy_row(const Row& row) {
  EnergyRow read{.run = std::string{row.text("run")},
                 .scope = std::string{row.text("scope")},
                 .note = std::string{row.text("note")}};
  if (read.scope != "gpu" && read.scope != "node") row.fail_expected("scope", "gpu or node");
  const auto above_zero = [&](const char* column) {
    const auto value = row.number(column);
    if (!value || !(*value > 0)) row.fail_expected(column, "a number above 0");
    return *value;
  };
  read.measured = above_zero("energy_mwh");
  const double pue = above_zero("pue");
  const RowQuestion asked = question_of(row);
  const models::Question& question = asked.question;
  const models::Prediction& step = asked.step;
  const auto gpus = static_cast<double>(question.plan.gpus());
  const Power of_gpu =
      models::gpu_power(question.cluster, question.plan.gpus(), step.energy, step.step);
  read.watts =
      read.scope == "gpu" ? of_gpu.count() : step.energy.count() / seconds(step.step) / gpus;
  const auto hours = row.number("gpu_hours");
  read.hours_published = hours.has_value();
  read.step_hours = asked.tokens / step.tokens_per_second / 3600 * gpus;
  read.hours = hours.value_or(read.step_hours);
  if (!(read.hours > 0)) row.fail_expected("gpu_hours", "hours above 0");
  read.predicted = read.watts * read.hours * pue / 1e6;
  if (read.scope == "gpu") {
    read.least_hours = read.measured * 1e6 / pue / question.cluster.gpu().board_power.count();
  }
  return read;
}

}  // namespace

bool holds_energy(const Table& table) {
  return table.has("energy_mwh") && table.has("scope");
}

EnergyReport compare_energy(const Table& table, const Workers& workers) {
  table.require({"run", "tokens", "gpu_hours", "model", "cluster", "software", "plan", "scope",
                 "pue", "energy_mwh"});
  std::vector<EnergyRow> rows(table.size());
  const bool all = workers.work_through(
      table.size(), [&](std::size_t i, unsigned) { rows[i] = read_energy_row(table[i]); });
  if (!all) return {.json = nullptr, .text = {}, .stopped = true};
  std::vector<double> errors;
  Json list = Json::array();
  int alike = 0;
  TextTable lines{
      {"<run", "<of", "hours", "/ steps", "W a GPU", "measured", "predicted", "error", "<"}};
  for (const EnergyRow& each : rows) {
    if (each.hours_published) errors.push_back(std::abs(each.error()));
    list.push_back(
        {{"run", each.run},
         {"scope", each.scope},
         {"scored", each.hours_published},
         {"gpu_hours", each.hours},
         {"predicted_w_per_gpu", each.watts},
         {"measured_mwh", each.measured},
         {"predicted_mwh", each.predicted},
         {"error_pct", each.error()},
         {"step_gpu_hours", each.step_hours},
         {"hours_over_steps", each.stretch()},
         {"least_hours_over_steps",
          each.least_hours > 0 ? Json(each.least_hours / each.step_hours) : Json(nullptr)},
         {"like_published_runs", each.like_published_runs()}});
    alike += each.like_published_runs() ? 1 : 0;
    lines.add({each.run, each.scope,
               fmt::format("{:.0f}{}", each.hours, each.hours_published ? "" : "*"),
               fmt::format("{:.2f}", each.stretch()), fmt::format("{:.0f}", each.watts),
               fmt::format("{:.1f} MWh", each.measured), fmt::format("{:.1f} MWh", each.predicted),
               fmt::format("{:+.1f} %", each.error()), each.note});
  }
  EnergyReport report;
  report.json = {
      {"kind", "energy"},
      {"rows", rows.size()},
      {"scored", errors.size()},
      {"median_abs_error_pct", errors.empty() ? Json(nullptr) : Json(median(errors))},
      {"worst_abs_error_pct", errors.empty() ? Json(nullptr) : Json(std::ranges::max(errors))},
      {"runs", std::move(list)}};
  report.text = fmt::format("{} trainings whose energy was measured, {} with published hours",
                            rows.size(), errors.size());
  if (!errors.empty()) {
    report.text += fmt::format(": median error {:.1f} %, worst {:.1f} %", median(errors),
                               std::ranges::max(errors));
  }
  report.text +=
      "\n\n" + lines.text(false) +
      "\n* predicted from tokens, steps alone: such a row judges the step as well\n" +
      fmt::format(
          "/ steps: published hours, or those with which the predicted power "
          "uses the measured energy,\n  over hours of the predicted steps "
          "alone; {} published runs needed {:g} to {:g}, as {} of {} rows do\n",
          published_runs.runs, published_runs.p10, published_runs.p90, alike, rows.size());
  for (const EnergyRow& each : rows) {
    if (each.hours_published || each.least_hours <= each.step_hours) continue;
    report.text += fmt::format(
        "{}: even at the board power its energy takes {:.2f} times the "
        "hours of steps alone\n",
        each.run, each.least_hours / each.step_hours);
  }
  return report;
}

}  // namespace orrery::scenarios
