#include "scenarios/validation/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/validation/reasons.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t worst_rows = 20;

std::string figures(const Scores& scores, const char* of) {
  std::string text = fmt::format("{} runs in the {}, {} simulated, {} scored.\n\n", scores.rows, of,
                                 scores.simulated, scores.scored);
  if (!scores.errors) return text;
  text += "| figure | value |\n|---|--:|\n";
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  line("step time, median error", fmt::format("{:.1f} %", scores.errors->median));
  line("90th percentile", fmt::format("{:.1f} %", scores.errors->p90));
  line("bias (median signed error)", fmt::format("{:+.1f} %", scores.errors->bias));
  if (scores.mean_over_stacks) {
    line("mean over stacks of ten runs or more", fmt::format("{:.1f} %", *scores.mean_over_stacks));
  }
  if (scores.ranking.groups > 0) {
    line("regret of the plan predicted fastest",
         fmt::format("{:.1f} % ({} groups)", scores.ranking.mean_regret, scores.ranking.groups));
    line("pairs of plans in the right order (without repeats of one plan)",
         fmt::format("{:.1f} %", scores.ranking.pairs_in_order));
  }
  if (scores.interval) {
    line("runs inside p10 to p90 (80 % expected)",
         fmt::format("{:.1f} %", scores.interval->inside));
  }
  if (scores.memory) {
    line("peak memory, median error / 90th percentile",
         fmt::format("{:.1f} / {:.1f} % ({} runs)", scores.memory->median, scores.memory->p90,
                     scores.memory->rows));
  }
  line("runs that ran but were predicted not to fit",
       fmt::format("{} of {}", scores.said_not_to_fit, scores.scored));
  return text;
}

std::string facet_table(const char* heading, const std::string& name,
                        const std::map<std::string, ErrorSummary>& summaries) {
  std::string text = fmt::format(
      "\n{} By {}\n\n| {} | runs | median | 90th percentile | bias |\n|---|--:|--:|--:|--:|\n",
      heading, name, name);
  for (const auto& [value, errors] : summaries) {
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:+.1f} % |\n",
                        value.empty() ? "not stated" : markdown(value), errors.rows, errors.median,
                        errors.p90, errors.bias);
  }
  return text;
}

std::string worst_table(const std::vector<MeasuredRun>& runs,
                        const std::vector<RunResult>& results) {
  std::string text =
      "\n## The worst twenty\n\nSorted by the factor between prediction and measurement. What is "
      "known of each run comes from the other runs.\n\n| run | stack | model | measured | "
      "predicted | error | what is known |\n|---|---|---|--:|--:|--:|---|\n";
  // Logarithms, so that twice and half the measured time are equally wrong.
  const auto size = [](const RunResult& each) {
    return std::abs(std::log(1 + *each.error_pct / 100));
  };
  for (const RunResult* each : worst_of(results, worst_rows, size)) {
    const MeasuredRun& run = runs[each->row];
    text += fmt::format("| {} | {} | {}, {} GPUs | {:.3g} s | {:.3g} s | {:+.0f} % | {} |\n",
                        markdown(run.run), markdown(run.software), markdown(run.model), *run.gpus,
                        *run.step_time, *each->predicted, *each->error_pct,
                        markdown(explanation_of(runs, results, each->row)));
  }
  return text;
}

/// The limits that the profiles state: what they do not describe.
std::string limits(const std::vector<RunResult>& results) {
  std::map<std::string, std::string> stated;
  for (const RunResult& each : results) {
    if (each.scored() && !each.profile_limits.empty()) stated[each.profile] = each.profile_limits;
  }
  std::string text;
  for (const auto& [profile, words] : stated) {
    text += fmt::format("- **{}**: {}\n", markdown(profile), markdown(words));
  }
  return text.empty() ? text : "\n## What the profiles do not describe\n\n" + text;
}

std::string reasons_table(const char* title, const Reasons& reasons) {
  if (reasons.runs().empty()) return {};
  std::string text = fmt::format("\n## {}\n\n| why | runs |\n|---|--:|\n", title);
  for (const auto& [reason, runs] : reasons.runs()) {
    text += fmt::format("| {} | {} |\n", markdown(reason), runs.size());
  }
  return text;
}

std::string unscored(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results) {
  const auto [unscored, skipped] = left_out_of(runs, results);
  return reasons_table("Simulated, not scored", unscored) + reasons_table("Not simulated", skipped);
}

std::string apart(const Scores& scores) {
  std::string text;
  for (const auto& [group, own] : scores.apart) {
    text += fmt::format("\n## Reported apart: {}\n\n{}", markdown(group), figures(own, "group"));
    const auto& [name, summaries] = own.by.front();
    text += facet_table("###", name, summaries);
  }
  return text;
}

}  // namespace

std::string page_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                    const Scores& scores, const std::string& file, const std::string& picture,
                    const std::string& left_out) {
  std::string text = fmt::format(
      "# Predicted against measured\n\nMade by `orrery validate {} --page FOLDER`; nothing on this "
      "page is written by hand. An error is 100 (predicted / measured - 1).\n\n{}\n"
      "![Predicted against measured step times, and the errors of each facet]({})\n",
      markdown_code(file), figures(scores, "file"), picture);
  text += left_out;
  const Scores by_facet = scores_of(runs, results, facets_of(runs));
  for (const auto& [name, summaries] : by_facet.by) text += facet_table("##", name, summaries);
  return markdown_page(text + apart(by_facet) + worst_table(runs, results) + limits(results) +
                       unscored(runs, results));
}

}  // namespace orrery::scenarios
