#include "scenarios/validation/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "models/plan/precision_formats.hpp"
#include "models/prediction/error/published_errors.hpp"
#include "models/prediction/prediction.hpp"
#include "scenarios/validation/runs/run_experts.hpp"
#include "scenarios/validation/runs/run_question.hpp"

namespace orrery::scenarios {

namespace {

/// Converts a memory peak as tools print it, in GiB.
Bytes from_gibibytes(double value) {
  return Bytes{std::llround(value * 1024 * 1024 * 1024)};
}

/// Whether a run may fit: if it does not state its recomputation, it is enough that it fits with
/// full recomputation.
bool may_fit(const MeasuredRun& run, const models::Question& question, models::Fit fit) {
  if (fit != models::Fit::no || run.plan.contains("recompute")) return fit != models::Fit::no;
  models::Question leanest = question;
  leanest.plan.recompute.kind = models::Recompute::full;
  return estimate(leanest).fit != models::Fit::no;
}

void predict_run(const MeasuredRun& run, const models::Question& question, RunResult& result) {
  const models::Prediction prediction = predict(question);
  result.predicted = seconds(prediction.step);
  result.p10 = seconds(prediction.uncertainty.p10);
  result.p90 = seconds(prediction.uncertainty.p90);
  const models::StageMemory& fullest = prediction.memory[prediction.fullest];
  result.predicted_memory = fullest.reported;
  result.need = fullest.need;
  result.fits = may_fit(run, question, prediction.fit);
  result.assumptions = prediction.assumptions;
  result.fallback_curves = prediction.priced.fallback_curves;
  result.traits = models::traits_of(question);
  if (question.software.name == "generic") result.traits.stack = run.software;
  result.largest_part = name(prediction.bottleneck());
  result.profile = question.software.name;
  result.profile_limits = question.software.limits;
  result.peak = models::size_and_peak(question.model.parameters, question.cluster.gpu().name,
                                      models::compute_dtype(question.plan.formats.precision));
  if (!run.step_time) return;
  result.title = run.model + " with " + run.software;
  result.mfu = prediction.mfu * *result.predicted / *run.step_time;
  result.error_pct = 100 * (*result.predicted / *run.step_time - 1);
}

constexpr double far_off = 10;  // a factor, either way

std::string not_scored_because(const MeasuredRun& run) {
  if (!run.set_aside.empty()) return run.set_aside;
  return run.step_time ? "" : "no step_time_s is stated";
}

}  // namespace

std::string group_apart(const MeasuredRun& run) {
  for (const char* const unseen : {new_source_runs, recurrent_runs}) {
    if (run.reported_apart == unseen) return unseen;
  }
  const bool adapters = run.task == "lora" || run.task == "qlora";
  if (adapters) return "LoRA";
  if (run.task == "sft") {
    const bool encodes = run.family == "bert" || run.family == "electra";
    return encodes ? "fine-tuning of encoders" : "fine-tuning of language models";
  }
  const std::string precision = run.stated("precision");
  const bool scaled_blocks = precision == "mxfp8" || precision == "nvfp4";
  if (scaled_blocks && !has_experts(run)) return precision;
  if (!run.reported_apart.empty()) return run.reported_apart;
  if (has_experts(run)) return std::string{expert_runs};
  const std::string zero = run.stated("zero");
  if (zero == "2" || zero == "3") return sharded_runs;
  return run.count("context").value_or(1) > 1 ? context_runs : "";
}

std::string RunResult::left_out_because() const {
  if (!simulated()) return skipped_because;
  if (!not_scored_because.empty() || apart.empty()) return not_scored_because;
  return "reported separately: " + apart;
}

std::string doubt_of(const MeasuredRun& run, double predicted) {
  if (!run.step_time) return {};
  const double factor = *run.step_time / predicted;
  if (factor >= far_off) {
    return fmt::format(
        "{:.6g} s measured are {:.0f} times the {:.3g} s predicted: is step_time_s in ms?",
        *run.step_time, factor, predicted);
  }
  if (factor > 1 / far_off) return {};
  return fmt::format(
      "{:.6g} s measured, {:.3g} s predicted, {:.0f} times as long: is step_time_s in "
      "seconds, of a whole step?",
      *run.step_time, predicted, 1 / factor);
}

std::vector<RunResult> validate(const std::vector<MeasuredRun>& runs,
                                const ValidationOptions& options) {
  Questions questions{options.profiles};
  std::vector<RunResult> results(runs.size());
  std::vector<std::optional<models::Question>> asked(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    results[i].row = i;
    results[i].not_scored_because = not_scored_because(runs[i]);
    results[i].apart = group_apart(runs[i]);
    if (runs[i].peak_memory) results[i].measured_memory = from_gibibytes(*runs[i].peak_memory);
    auto question = questions.of(runs[i]);
    if (const Skip* skip = std::get_if<Skip>(&question)) {
      results[i].skipped_because = skip->reason;
    } else {
      asked[i] = std::move(std::get<models::Question>(question));
    }
  }
  const Workers workers{options.threads, options.progress};
  workers.work_through(runs.size(), [&](std::size_t i, unsigned /*member*/) {
    try {
      if (asked[i]) predict_run(runs[i], *asked[i], results[i]);
      asked[i].reset();
    } catch (const InputError& error) {
      results[i].skipped_because = error.what();
    }
  });
  return results;
}

std::map<std::string, std::vector<double>> errors_by(const std::vector<RunResult>& results,
                                                     const std::vector<std::string>& cells) {
  std::map<std::string, std::vector<double>> errors;
  for (const RunResult& each : results) {
    if (each.scored()) errors[cells[each.row]].push_back(*each.error_pct);
  }
  return errors;
}

std::vector<const RunResult*> worst_of(const std::vector<RunResult>& results, std::size_t most,
                                       double (*size)(const RunResult& each)) {
  std::vector<const RunResult*> scored;
  for (const RunResult& each : results) {
    if (each.scored()) scored.push_back(&each);
  }
  std::ranges::stable_sort(scored, std::greater{},
                           [&](const RunResult* each) { return size(*each); });
  scored.resize(std::min(scored.size(), most));
  return scored;
}

namespace {

constexpr std::size_t least_rows_of_a_stack = 10;

std::map<std::string, ErrorSummary> summaries_by(const std::vector<RunResult>& results,
                                                 const std::vector<std::string>& cells) {
  std::map<std::string, ErrorSummary> summaries;
  for (const auto& [value, list] : errors_by(results, cells)) summaries[value] = summary_of(list);
  return summaries;
}

std::string group_of(const MeasuredRun& run) {
  std::string group;
  for (const std::string& part :
       {run.source, run.model, run.gpu, std::to_string(*run.gpus), run.stated("seq_len"),
        run.stated("global_batch"), run.stated("precision")}) {
    group += part + '\n';
  }
  return group;
}

/// How a run says that the model is cut: tensor, pipeline and micro-batch sizes.
using Cut = std::array<std::string, 3>;
Cut cut_of(const MeasuredRun& run) {
  return {run.stated("tensor"), run.stated("pipeline"), run.stated("micro_batch")};
}

std::optional<double> mean_over_stacks(const std::vector<MeasuredRun>& runs,
                                       const std::vector<RunResult>& results) {
  std::vector<std::string> stacks;
  for (const MeasuredRun& each : runs) stacks.push_back(each.software);
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [stack, summary] : summaries_by(results, stacks)) {
    if (summary.rows < least_rows_of_a_stack) continue;
    sum += summary.median;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<MemoryScore> memory_of(const std::vector<RunResult>& results) {
  std::vector<double> errors;
  for (const RunResult& each : results) {
    if (!each.scored() || !each.measured_memory) continue;
    errors.push_back(std::abs(100 * (ratio(*each.predicted_memory, *each.measured_memory) - 1)));
  }
  if (errors.empty()) return std::nullopt;
  return MemoryScore{errors.size(), quantile(errors, 0.5), quantile(errors, 0.9)};
}

std::optional<IntervalScore> interval_of(const std::vector<MeasuredRun>& runs,
                                         const std::vector<RunResult>& results) {
  std::size_t rows = 0, inside = 0;
  for (const RunResult& each : results) {
    if (!each.scored()) continue;
    const double measured = *runs[each.row].step_time;
    ++rows;
    inside += measured >= *each.p10 && measured <= *each.p90 ? 1 : 0;
  }
  if (rows == 0) return std::nullopt;
  return IntervalScore{rows, 100 * static_cast<double>(inside) / static_cast<double>(rows)};
}

/// The scores of runs that are scored together.
Scores figures_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                  const std::vector<Grouping>& groupings) {
  Scores scores;
  scores.rows = results.size();
  std::vector<double> errors;
  std::vector<RankedRun> ranked_runs;
  std::map<MeasuredRun, std::size_t> plans;  // in the order of their first runs
  std::map<Cut, std::size_t> cuts;
  for (const RunResult& each : results) {
    scores.simulated += each.simulated() ? 1 : 0;
    if (!each.scored()) continue;
    scores.said_not_to_fit += each.fits ? 0 : 1;
    const MeasuredRun& run = runs[each.row];
    errors.push_back(*each.error_pct);
    ranked_runs.push_back({.group = group_of(run),
                           .measured = *run.step_time,
                           .predicted = *each.predicted,
                           .plan = plans.try_emplace(run.question(), plans.size()).first->second,
                           .cut = cuts.try_emplace(cut_of(run), cuts.size()).first->second});
  }
  scores.scored = errors.size();
  scores.errors = summary_if_any(errors);
  scores.mean_over_stacks = mean_over_stacks(runs, results);
  for (const Grouping& each : groupings) {
    scores.by.emplace_back(each.column, summaries_by(results, each.cells));
  }
  scores.ranking = ranking_of(ranked_runs);
  scores.memory = memory_of(results);
  scores.interval = interval_of(runs, results);
  return scores;
}

/// The groups reported separately, in the order of their first runs.
std::vector<std::string> groups_apart(const std::vector<RunResult>& results) {
  std::vector<std::string> groups;
  for (const RunResult& each : results) {
    const bool fresh = std::ranges::find(groups, each.apart) == groups.end();
    if (!each.apart.empty() && fresh) groups.push_back(each.apart);
  }
  return groups;
}

/// A group's results, scored as if they were a file of their own.
std::vector<RunResult> results_of(const std::string& group, const std::vector<RunResult>& results) {
  std::vector<RunResult> own;
  for (const RunResult& each : results) {
    if (each.apart != group) continue;
    own.push_back(each);
    own.back().apart.clear();
  }
  return own;
}

}  // namespace

Scores scores_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                 const std::vector<Grouping>& groupings) {
  Scores scores = figures_of(runs, results, groupings);
  for (const std::string& group : groups_apart(results)) {
    scores.apart.push_back({group, figures_of(runs, results_of(group, results), groupings)});
  }
  return scores;
}

}  // namespace orrery::scenarios
