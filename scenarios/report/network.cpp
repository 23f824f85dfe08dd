#include <fmt/format.h>

#include <algorithm>

#include "scenarios/report/sections.hpp"
#include "sim/input/units.hpp"
#include "sim/mean_and_spread.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_lines = 6;
constexpr std::size_t most_named = 3;  // traffic that a loss is attributed to, per line

/// What other jobs' traffic costs this job's step, and this job's traffic costs their steps.
std::string jobs_lines(const models::NetworkAnswer& found, Time step) {
  std::string text;
  if (found.from_jobs != Time{}) {
    text +=
        fmt::format("  of that from other jobs {} ({:+.2f} %)\n", step_part(found.from_jobs, step),
                    100 * ratio(found.from_jobs, step - found.from_jobs));
  }
  for (std::size_t i = 0; i < found.jobs.size(); ++i) {
    const models::JobAnswer& job = found.jobs[i];
    text += fmt::format("  /jobs/{}, {} on {} GPUs: a step alone {}", i, job.name, job.gpus,
                        format(job.alone));
    if (!job.shares_links) {
      text += ", shares no link that can be saturated";
    } else if (job.step) {
      text += fmt::format(", next to this job {} ({:+.2f} %)", format(*job.step),
                          100 * (ratio(*job.step, job.alone) - 1));
    }
    text += "\n";
  }
  return text;
}

/// Mean and spread of the phases, if any were asked for.
std::string phases_line(const models::PhasesAnswer& phases) {
  if (phases.steps.empty()) return {};
  const MeanAndSpread steps = mean_and_spread(phases.steps);
  const auto [least, most] = std::ranges::minmax(phases.steps);
  return fmt::format(
      "  {} phases (seed {}, launches {} later on average): mean {:.5g} s, standard deviation {}, "
      "{:.5g} to {:.5g} s; shown is the one nearest to the mean\n",
      phases.asked.count, phases.asked.seed, format(phases.asked.delay), steps.mean,
      format(from_seconds(steps.deviation)), seconds(least), seconds(most));
}

/// How much of the step is due to links that siblings share, where the difference is a percent.
std::string bound_line(const models::Prediction& found) {
  const Time bound = found.network.lower_bound;
  if (ratio(found.step - bound, found.step) < 0.01) return {};
  return fmt::format("  lower bound {}: nothing shares a link\n", step_part(bound, found.step));
}

}  // namespace

std::string network_section(const ReportInputs& in) {
  const models::NetworkAnswer& found = in.prediction.network;
  const std::string jitter =
      found.jitter == Time{}
          ? ""
          : fmt::format("  kernel jitter {} ({:+.2f} %)\n",
                        step_part(found.jitter, in.prediction.step),
                        100 * ratio(found.jitter, in.prediction.step - found.jitter));
  const std::string bound = bound_line(in.prediction);
  if (found.evaluation == "static" && jitter.empty() && bound.empty()) return {};
  std::string text = heading("Network", in.options) + jitter + bound;
  if (found.evaluation == "static") return text;
  text += paragraph(fmt::format("{}: {}", found.evaluation, found.why), 2, in.options);
  if (found.evaluation == "maps") return text + jobs_lines(found, in.prediction.step);
  const Time alone = in.prediction.step - found.contention;
  text += fmt::format(
      "  alone {}, contention {} ({:+.2f} %)\n", step_part(alone, in.prediction.step),
      step_part(found.contention, in.prediction.step), 100 * ratio(found.contention, alone));
  text += phases_line(found.phases) + jobs_lines(found, in.prediction.step);
  for (std::size_t i = 0; i < std::min(most_lines, found.losses.size()); ++i) {
    const models::TrafficLoss& loss = found.losses[i];
    std::string to;
    for (std::size_t k = 0; k < std::min(most_named, loss.to.size()); ++k) {
      to += fmt::format(", {} by {}", percent(loss.to[k].second), loss.to[k].first);
    }
    text += fmt::format("  {:>10}  delay of {}{}\n", step_part(loss.lost, in.prediction.step),
                        loss.name, to);
  }
  for (std::size_t i = 0; i < std::min(most_lines, found.links.size()); ++i) {
    const models::FullLinks& link = found.links[i];
    text += fmt::format("  {:>10}  over capacity: {}{}\n",
                        step_part(link.overloaded, in.prediction.step), link.name,
                        link.alike > 1 ? fmt::format(" and {} like it", link.alike - 1) : "");
  }
  return text;
}

}  // namespace orrery::scenarios
