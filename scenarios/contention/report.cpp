// The report of `orrery contention`: a table, a sentence and a page.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "scenarios/contention/contention.hpp"
#include "scenarios/drawing/markup.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

std::string signed_percent(double share) {
  return fmt::format("{:+.2f} %", 100 * share);
}

/// "+2.37 ± 0.04 %": mean and standard error against the contiguous case with the same overlap.
std::string against(const ContentionReport& report, const ContentionCase& each) {
  const ContentionCase* usual = report.usual(each);
  if (!usual || usual == &each) return "";
  const MeanAndSpread longer = report.against_usual(each);
  return fmt::format("{:+.2f} ± {:.2f} %", 100 * longer.mean, 100 * longer.error);
}

/// "28.11 s ± 0.02": mean and standard deviation over the phases.
std::string step_text(const ContentionCase& each) {
  const MeanAndSpread steps = mean_and_spread(each.phases.steps);
  const double deviation = steps.deviation / steps.mean;
  constexpr double rounding = 1e-9;  // of equal steps, whose mean is not exact
  return fmt::format("{} ± {:.2g} %", step_part(each.step, each.step),
                     deviation < rounding ? 0 : 100 * deviation);
}

/// "pp_b from stage 1: 1.08 s in all, 98 % of it due to pp_f from stage 15". Nothing where no
/// traffic is delayed by a thousandth of the step.
std::string most_delayed(const ContentionCase& each) {
  if (each.network.losses.empty()) return "none";
  const models::TrafficLoss& most = each.network.losses.front();
  if (orrery::ratio(most.lost, each.step) < 1e-3) return "none by 0.1 % of the step";
  std::string text = fmt::format("{}: {} in all", most.name, format(most.lost));
  if (!most.to.empty() && most.to.front().second > 0) {
    text += fmt::format(", {:.0f} % of it due to {}", 100 * most.to.front().second,
                        most.to.front().first);
  }
  return text;
}

const ContentionCase* found(const ContentionReport& report, std::string_view name, bool overlap) {
  for (const ContentionCase& each : report.cases) {
    if (each.name == name && each.overlap == overlap && each.refused.empty()) return &each;
  }
  return nullptr;
}

/// A case as a row of the table.
std::vector<std::string> cells_of(const ContentionReport& report, const ContentionCase& each) {
  const char* overlap = each.overlap ? "on" : "off";
  if (!each.refused.empty()) return {overlap, each.name, "", "", "", "", "", each.refused};
  return {overlap,
          each.name,
          step_text(each),
          step_part(each.alone(), each.step),
          signed_percent(orrery::ratio(each.contention, each.alone())),
          each.network.jobs.empty() ? "" : step_part(each.from_jobs, each.step),
          against(report, each),
          most_delayed(each)};
}

}  // namespace

std::string sentence_of(const ContentionReport& report) {
  std::string text;
  for (const bool overlap : {false, true}) {
    const ContentionCase* usual = found(report, "contiguous", overlap);
    if (!usual) continue;
    text += fmt::format(
        "{}With gradients reduced {} a step takes {:.2f} s, {:.2f} % of it because its traffic "
        "shares links",
        text.empty() ? "" : " ", overlap ? "next to backward" : "after backward",
        seconds(usual->step), 100 * orrery::ratio(usual->contention, usual->step));
    for (const ContentionCase& each : report.cases) {
      if (each.overlap != overlap || &each == usual || !each.refused.empty()) continue;
      const bool job = each.network.jobs.size() > 0;
      const double alone = orrery::ratio(each.alone(), usual->alone()) - 1;
      text += fmt::format(
          "; {} {}{}", job ? fmt::format("next to a job of {} GPUs", report.job_gpus) : each.name,
          against(report, each),
          std::abs(alone) < 5e-5
              ? ""
              : fmt::format(" ({} if no link were shared)", signed_percent(alone)));
    }
    text += ".";
  }
  return text;
}

Json to_json(const ContentionReport& report) {
  Json cases = Json::array();
  for (const ContentionCase& each : report.cases) {
    const bool known = each.refused.empty();
    Json one{{"name", each.name}, {"overlap", each.overlap}};
    one["refused"] = known ? Json(nullptr) : Json(each.refused);
    one["step_time_s"] = known ? Json(seconds(each.step)) : Json(nullptr);
    const bool compared = known && report.usual(each) != nullptr;
    const MeanAndSpread longer = compared ? report.against_usual(each) : MeanAndSpread{};
    one["against_contiguous_pct"] = compared ? Json(100 * longer.mean) : Json(nullptr);
    one["against_contiguous_error_pct"] = compared ? Json(100 * longer.error) : Json(nullptr);
    Json steps = Json::array();
    for (const Time step : each.phases.steps) steps.push_back(seconds(step));
    one["step_times_s"] = known ? std::move(steps) : Json(nullptr);
    one["contention_s"] = known ? Json(seconds(each.contention)) : Json(nullptr);
    one["from_jobs_s"] = known ? Json(seconds(each.from_jobs)) : Json(nullptr);
    one["network"] = known ? to_json(each.network) : Json(nullptr);
    cases.push_back(std::move(one));
  }
  return {{"scenario", report.scenario},     {"cluster", report.cluster},
          {"nodes", report.nodes},           {"all_nodes", report.all_nodes},
          {"job_gpus", report.job_gpus},     {"complete", !report.stopped},
          {"phases", report.phases.count},   {"seed", report.phases.seed},
          {"sentence", sentence_of(report)}, {"cases", std::move(cases)}};
}

std::string text_of(const ContentionReport& report, bool colour) {
  std::string text =
      toned(fmt::format("What the network costs {}", report.scenario), Tone::bold, colour) +
      fmt::format("\n{} · {} of {} nodes\n\n", report.cluster, report.nodes, report.all_nodes);
  TextTable table{{"<overlap", "<placement", "step", "alone", "contention", "of other jobs",
                   "against contiguous", "<most delayed"}};
  for (const ContentionCase& each : report.cases) table.add(cells_of(report, each));
  return text + table.text(colour) + "\n" + sentence_of(report) + "\n";
}

std::string page_of(const ContentionReport& report, const std::string& command,
                    const std::string& picture) {
  std::string text = fmt::format(
      "# What the network costs {}\n\nMade by `{}`.\n\n{}\n\n![Steps by placement]({})\n\n{}, {} "
      "of {} nodes. Each NIC, uplink and switch of the fabric is a link; collectives and transfers "
      "of all jobs share them max-min fairly. Scattered: in a random order over all nodes. The "
      "second job trains Llama 3 8B on {} GPUs of other nodes with data parallelism only; its "
      "steps follow one another during ours. The slow NIC is another one of {} in each "
      "phase.\n\nEach step is the mean of {} "
      "phases (seed {}): in each, every transfer and collective between nodes is launched later by "
      "a random exponential delay, {} on average (assumed), the same in all rows. After a step "
      "stands its "
      "standard deviation over the phases, after a difference its standard error. *Alone* has the "
      "same delays, and shares no link. *Most delayed* sums all transfers of one kind, of which "
      "many are hidden behind others and behind compute.\n\n| overlap | placement | step | alone "
      "| contention | of it from the second job | against contiguous | most delayed "
      "|\n|---|---|--:|--:|--:|--:|--:|---|\n",
      markdown(report.scenario), markdown_code(command), markdown(sentence_of(report)), picture,
      markdown(report.cluster), report.nodes, report.all_nodes, report.job_gpus, report.nics,
      report.phases.count, report.phases.seed, format(report.phases.delay));
  for (const ContentionCase& each : report.cases) {
    std::vector<std::string> cells{
        each.overlap ? "on" : "off", each.name, "", "", "", "", "", each.refused};
    if (each.refused.empty()) cells = cells_of(report, each);
    text += "|";
    for (const std::string& cell : cells) text += fmt::format(" {} |", markdown(cell));
    text += "\n";
  }
  return markdown_page(text);
}

void write_page(const std::string& folder, const ContentionReport& report) {
  make_folder(folder);
  const std::filesystem::path path{folder};
  write_durably((path / "contention.svg").string(), picture_of(report));
  write_durably(
      (path / "contention.md").string(),
      page_of(report, fmt::format("orrery contention {} --page {}", report.scenario, folder),
              "contention.svg"));
}

}  // namespace orrery::scenarios
