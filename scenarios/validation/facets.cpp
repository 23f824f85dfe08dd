// The columns by which the page splits errors, and its explanations of single runs.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/plan/fields.hpp"
#include "scenarios/validation/page/page.hpp"

namespace orrery::scenarios {

namespace {

/// Leading blanks sort the sizes; neither Markdown nor SVG shows them.
std::string size_of(const MeasuredRun& run) {
  const std::int64_t gpus = run.gpus.value_or(0);
  if (gpus <= 8) return "   1 to 8 GPUs";
  if (gpus <= 64) return "  9 to 64 GPUs";
  return gpus <= 512 ? " 65 to 512 GPUs" : "over 512 GPUs";
}

std::string strategy_of(const MeasuredRun& run) {
  const std::int64_t tensor = run.count("tensor").value_or(1);
  const std::int64_t pipeline = run.count("pipeline").value_or(1);
  const std::int64_t context = run.count("context").value_or(1);
  const std::int64_t others =
      run.gpus.value_or(1) / std::max<std::int64_t>(1, tensor * context * pipeline);
  std::string text;
  for (const models::PlanField& axis : models::plan_fields()) {
    if (!axis.is_degree()) continue;
    const std::int64_t degree = run.count(axis.key).value_or(axis.key == "data" ? others : 1);
    if (degree > 1) text += fmt::format("{}{}", text.empty() ? "" : " + ", axis.name);
  }
  return text.empty() ? "one GPU" : text;
}

/// Settings in which two runs may differ besides model, stack and GPU: GPU count and plan fields.
using Settings = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const MeasuredRun& run) {
  Settings settings{{"gpus", run.gpus ? std::to_string(*run.gpus) : std::string{}}};
  for (const models::PlanField& field : models::plan_fields()) {
    if (!field.column.empty()) settings.emplace_back(field.name, run.stated(field.key));
  }
  return settings;
}

std::string family_of(const MeasuredRun& run) {
  return run.source + '\n' + run.software + '\n' + run.model + '\n' + run.gpu;
}

/// The closest other run: fewest settings changed, then the least error.
struct ClosestRun {
  const RunResult* result = nullptr;
  std::string changed;
  std::size_t changes = 0;
};

ClosestRun closest_run_of(const std::vector<MeasuredRun>& runs,
                          const std::vector<RunResult>& results, std::size_t row) {
  ClosestRun best;
  const Settings own = settings_of(runs[row]);
  for (const RunResult& each : results) {
    if (!each.scored() || each.row == row) continue;
    if (family_of(runs[each.row]) != family_of(runs[row])) continue;
    ClosestRun closest{&each, {}, 0};
    const Settings other = settings_of(runs[each.row]);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].second == other[i].second) continue;
      ++closest.changes;
      closest.changed += fmt::format("{}{} {}", closest.changed.empty() ? "" : ", ", own[i].first,
                                     other[i].second.empty() ? "not stated" : other[i].second);
    }
    const bool closer = best.result == nullptr || closest.changes < best.changes ||
                        (closest.changes == best.changes &&
                         std::abs(*each.error_pct) < std::abs(*best.result->error_pct));
    if (closer) best = closest;
  }
  return best;
}

std::vector<double> errors_of_family(const std::vector<MeasuredRun>& runs,
                                     const std::vector<RunResult>& results, std::size_t row) {
  std::vector<double> errors;
  for (const RunResult& each : results) {
    if (!each.scored() || each.row == row) continue;
    if (family_of(runs[each.row]) == family_of(runs[row])) errors.push_back(*each.error_pct);
  }
  return errors;
}

}  // namespace

std::vector<Grouping> facets_of(const std::vector<MeasuredRun>& runs) {
  std::vector<Grouping> facets{{"stack", {}}, {"GPU", {}}, {"size", {}}, {"strategy", {}}};
  for (const MeasuredRun& run : runs) {
    facets[0].cells.push_back(run.software);
    facets[1].cells.push_back(run.gpu);
    facets[2].cells.push_back(size_of(run));
    facets[3].cells.push_back(strategy_of(run));
  }
  return facets;
}

std::string explanation_of(const std::vector<MeasuredRun>& runs,
                           const std::vector<RunResult>& results, std::size_t row) {
  const RunResult& result = results[row];
  std::string text = fmt::format("most of the step is {}", result.largest_part);
  const std::vector<double> family = errors_of_family(runs, results, row);
  if (family.empty()) {
    text += "; the only run of its model here";
  } else {
    text += fmt::format("; {} other runs of its model: median {:+.0f} %", family.size(),
                        quantile(family, 0.5));
  }
  const ClosestRun closest = closest_run_of(runs, results, row);
  if (closest.result && closest.changes == 0) {
    text += fmt::format("; another run with the same settings: measured {:.3g} s",
                        *runs[closest.result->row].step_time);
  } else if (closest.result && closest.changes <= 2) {
    text += fmt::format("; with {}: {:+.0f} %", closest.changed, *closest.result->error_pct);
  }
  if (result.fallback_curves > 0) {
    text += fmt::format("; {} fallback curve{}", result.fallback_curves,
                        result.fallback_curves == 1 ? "" : "s");
  }
  return text;
}

}  // namespace orrery::scenarios
