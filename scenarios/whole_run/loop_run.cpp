#include "scenarios/whole_run/loop_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/model/operation_list.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

/// Days from two days on, below hours.
std::string duration(double hours) {
  return hours >= 48 ? fmt::format("{:.2f} days", hours / 24) : fmt::format("{:.2f} hours", hours);
}

Json run_json(const models::ListedRun& run) {
  Json phases = Json::array();
  for (const models::LoopPhase& each : run.phases) {
    phases.push_back({{"gpus", each.gpus},
                      {"step_time_s", seconds(each.step)},
                      {"steps", each.steps},
                      {"hours", each.hours},
                      {"change_hours", each.change_hours},
                      {"busy", each.busy}});
  }
  return {{"hours", run.hours}, {"gpu_hours", run.gpu_hours}, {"phases", phases}};
}

}  // namespace

std::optional<LoopRunReport> loop_run(const Scenario& scenario,
                                      std::optional<double> deadline_hours) {
  const models::Question question = scenario.question();
  if (!question.model.list || question.model.list->trains()) return std::nullopt;
  LoopRunReport report{.scenario = scenario.name(),
                       .model_name = question.model.name,
                       .cluster = question.cluster.name,
                       .software = question.software.name,
                       .run = models::listed_run(question),
                       .alternatives = {},
                       .deadline_hours = deadline_hours};
  std::vector<std::int64_t> sizes;
  for (const models::LoopPhase& each : report.run.phases) sizes.push_back(each.gpus);
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  if (report.run.phases.size() < 2) return report;
  for (const std::int64_t gpus : sizes) {
    report.alternatives.emplace_back(gpus, models::listed_run_on(question, gpus));
  }
  return report;
}

Json to_json(const LoopRunReport& report) {
  Json json{{"command", "train"},          {"scenario", report.scenario},
            {"model", report.model_name},  {"cluster", report.cluster},
            {"software", report.software}, {"steps", report.run.steps}};
  json.update(run_json(report.run));
  json["days"] = report.run.hours / 24;
  Json others = Json::array();
  for (const auto& [gpus, run] : report.alternatives) {
    Json each = run_json(run);
    each["gpus"] = gpus;
    others.push_back(each);
  }
  json["with_one_size"] = others;
  json["deadline"] = report.deadline_hours
                         ? Json{{"hours", *report.deadline_hours}, {"meets", report.meets()}}
                         : Json(nullptr);
  return json;
}

std::string text_of(const LoopRunReport& report, bool colour) {
  std::string text =
      toned(fmt::format("{} on {}", report.model_name, report.cluster), Tone::bold, colour);
  text += fmt::format("\n{:.6g} steps in {}, {:.0f} GPU-hours, without failures\n\n",
                      report.run.steps, duration(report.run.hours), report.run.gpu_hours);
  TextTable table{{"GPUs", "a step", "steps", "time", "change before", "kernels"}};
  for (const models::LoopPhase& each : report.run.phases) {
    table.add({fmt::format("{}", each.gpus), format(each.step), fmt::format("{:.4g}", each.steps),
               duration(each.hours),
               each.change_hours > 0 ? fmt::format("{:.0f} s", each.change_hours * 3600) : "",
               fmt::format("{:.0f} %", 100 * each.busy)});
  }
  text += table.text(colour);
  if (!report.alternatives.empty()) {
    text += "\nWith one number of GPUs throughout:\n";
    TextTable others{{"GPUs", "time", "GPU-hours", "speed-up"}};
    const double least = report.alternatives.front().second.hours;
    for (const auto& [gpus, run] : report.alternatives) {
      others.add({fmt::format("{}", gpus), duration(run.hours),
                  fmt::format("{:.0f}", run.gpu_hours), fmt::format("{:.1f}", least / run.hours)});
    }
    text += others.text(colour);
  }
  if (report.deadline_hours) {
    text += fmt::format("\nThe deadline of {} is {}.\n", duration(*report.deadline_hours),
                        report.meets() ? "kept" : "missed");
  }
  return text;
}

}  // namespace orrery::scenarios
