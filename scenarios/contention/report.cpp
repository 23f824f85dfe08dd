// The report of `orrery contention`: a table, a sentence and a page.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "scenarios/contention/contention.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/result.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

double against(const ContentionReport& report, const ContentionCase& each) {
  const ContentionCase* usual = report.usual(each);
  return usual ? orrery::ratio(each.step, usual->step) - 1 : 0;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.2f} %", 100 * share);
}

/// "dp of stage 15: 1.03 s, 80 % of it to pp_f from stage 3".
std::string most_lost(const ContentionCase& each) {
  if (each.network.losses.empty()) return {};
  const models::TrafficLoss& most = each.network.losses.front();
  std::string text = fmt::format("{} {}", most.name, step_part(most.lost, each.step));
  if (!most.to.empty() && most.to.front().second > 0) {
    text += fmt::format(", {:.0f} % to {}", 100 * most.to.front().second, most.to.front().first);
  }
  return text;
}

Time alone_of(const ContentionCase& each) {
  return each.step - each.network.contention;
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
          step_part(each.step, each.step),
          step_part(alone_of(each), each.step),
          signed_percent(orrery::ratio(each.network.contention, alone_of(each))),
          each.network.jobs.empty() ? "" : step_part(each.network.from_jobs, each.step),
          signed_percent(against(report, each)),
          most_lost(each)};
}

}  // namespace

std::string sentence_of(const ContentionReport& report) {
  std::string text;
  for (const bool overlap : {false, true}) {
    const ContentionCase* usual = found(report, "contiguous", overlap);
    if (!usual) continue;
    text += fmt::format(
        "{}With gradients reduced {} a step takes {:.2f} s, of which sharing links "
        "is {}",
        text.empty() ? "" : " ", overlap ? "next to backward" : "after backward",
        seconds(usual->step),
        signed_percent(
            orrery::ratio(usual->network.contention, usual->step - usual->network.contention))
            .substr(1));
    for (const ContentionCase& each : report.cases) {
      if (each.overlap != overlap || &each == usual || !each.refused.empty()) continue;
      const bool job = each.network.jobs.size() > 0;
      const double alone = orrery::ratio(alone_of(each), alone_of(*usual)) - 1;
      text += fmt::format(
          "; {} {}{}", job ? fmt::format("next to a job of {} GPUs", report.job_gpus) : each.name,
          signed_percent(against(report, each)),
          std::abs(alone) < 5e-5
              ? ""
              : fmt::format(" ({} without sharing links)", signed_percent(alone)));
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
    one["against_contiguous_pct"] = known ? Json(100 * against(report, each)) : Json(nullptr);
    one["network"] = known ? to_json(each.network) : Json(nullptr);
    cases.push_back(std::move(one));
  }
  return {{"scenario", report.scenario},     {"cluster", report.cluster},
          {"nodes", report.nodes},           {"all_nodes", report.all_nodes},
          {"job_gpus", report.job_gpus},     {"complete", !report.stopped},
          {"sentence", sentence_of(report)}, {"cases", std::move(cases)}};
}

std::string text_of(const ContentionReport& report, bool colour) {
  std::string text =
      toned(fmt::format("What the network costs {}", report.scenario), Tone::bold, colour) +
      fmt::format("\n{} · {} of {} nodes\n\n", report.cluster, report.nodes, report.all_nodes);
  TextTable table{{"<overlap", "<placement", "step", "alone", "contention", "of other jobs",
                   "against contiguous", "<loses most"}};
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
      "steps follow one another during ours. The NIC is one of {}. A slower part may make a step "
      "shorter, because transfers that shared a link no longer coincide.\n\n| overlap | placement "
      "| step | alone | contention | of it from the second job | against contiguous | loses most "
      "|\n|---|---|--:|--:|--:|--:|--:|---|\n",
      report.scenario, command, sentence_of(report), picture, report.cluster, report.nodes,
      report.all_nodes, report.job_gpus, report.nics);
  for (const ContentionCase& each : report.cases) {
    if (each.refused.empty()) {
      text += fmt::format("| {} |\n", fmt::join(cells_of(report, each), " | "));
    } else {
      text += fmt::format("| {} | {} | | | | | | {} |\n", each.overlap ? "on" : "off", each.name,
                          each.refused);
    }
  }
  return text;
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
