#include "models/prediction/error/evidence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "models/plan/derived.hpp"
#include "models/prediction/error/published_errors.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::models {

namespace {

std::vector<RunKind> kinds_of_run(const Model& model, const Plan& plan) {
  std::vector<RunKind> kinds;
  const bool encodes = !model.causal;
  if (trains_adapters(plan)) {
    kinds.push_back(RunKind::adapters);
  } else if (plan.task != Task::pretrain) {
    kinds.push_back(encodes ? RunKind::encoders : RunKind::tuning);
  }
  if (usual_experts(model).count > 0) kinds.push_back(RunKind::experts);
  if (shards_gradients(plan)) kinds.push_back(RunKind::sharded);
  if (kinds.empty()) kinds.push_back(RunKind::dense);
  return kinds;
}

/// Is the attention kernel that of no statement: neither the plan's, nor the profile's for this
/// generation of GPUs, nor that of a stack with fitted runs?
bool assumes_attention(const Question& question) {
  const bool stated =
      question.plan.kernels.attention != AttentionKernel::of_stack ||
      question.software.kernels.attention.contains(question.cluster.gpu().generation.name);
  return !stated && !is_fitted(question.software);
}

/// Quantile 0.9 of Student's distribution over that of the normal one, by the first terms of its
/// expansion in 1 / degrees of freedom.
/// Source  Abramowitz & Stegun 1964, 26.7.5; 2 % below the exact one at 2 degrees
double of_few_groups(std::int64_t groups) {
  const double degrees = std::max(1.0, static_cast<double>(groups - 1));
  return 1 + 0.6607 / degrees + 0.4455 / (degrees * degrees);
}

double square_of(double value) {
  return value * value;
}

bool is_of(const RunGroup& group, RunKind kind) {
  return group.run.kinds.front() == kind;
}

/// Adds what each step adds to the variance of a range, and by which factor it widens it.
double add_steps(const RangeRecord& record, double variance, Evidence& found) {
  for (const RangeStep step : found.steps) {
    const double wider = variance + square_of(record.spread(step));
    found.factors.push_back(variance > 0 ? std::sqrt(wider / variance) : 1);
    variance = wider;
  }
  return variance;
}

/// Counts the nearest groups of the first kind.
void count_nearest(const RangeRecord& record, const RunTraits& asked, Evidence& found) {
  const auto away = [&](RangeStep step) { return std::ranges::count(found.steps, step) > 0; };
  if (!away(RangeStep::stack)) found.stack = asked.stack;
  const bool here = std::ranges::any_of(record.groups, [&](const RunGroup& each) {
    return is_of(each, asked.kinds.front()) && each.run.gpu == asked.gpu &&
           (found.stack.empty() || each.run.stack == found.stack);
  });
  if (here) found.gpu = asked.gpu;
  for (const RunGroup& each : record.groups) {
    if (!is_of(each, asked.kinds.front())) continue;
    if (!found.stack.empty() && each.run.stack != found.stack) continue;
    if (!found.gpu.empty() && each.run.gpu != found.gpu) continue;
    found.rows += each.rows;
    found.groups += each.groups;
  }
}

/// A profile that its user fitted: what was left out of that fit, widened by the same steps.
Evidence evidence_of_own(const RangeRecord& record, const RunTraits& asked, const Residuals& own) {
  Evidence found{.kinds = asked.kinds, .stack = asked.stack, .rows = own.rows, .groups = 1};
  const bool here = own.places.empty() || std::ranges::any_of(own.places, [&](const auto& place) {
                      return place.gpu == asked.gpu;
                    });
  if (here) found.gpu = asked.gpu;
  if (!here) found.steps.push_back(RangeStep::gpu);
  if (asked.year != 0 && (asked.year < own.from_year || asked.year > own.to_year)) {
    found.steps.push_back(RangeStep::era);
  }
  const double width = std::max(-own.p10, own.p90);
  const double steps = add_steps(record, square_of(width), found) - square_of(width);
  found.low = std::hypot(own.p10, std::sqrt(steps));
  found.high = std::hypot(own.p90, std::sqrt(steps));
  return found;
}

}  // namespace

namespace {

/// The stack that a profile is of: its name, or, for that of one installation, the stack's there.
const std::string& stack_of(const Software& software) {
  for (const Scope& each : software.stands_for) {
    if (!each.site.empty()) return each.stack;
  }
  return software.name;
}

}  // namespace

RunTraits traits_of(const Question& question) {
  return {.kinds = kinds_of_run(question.model, question.plan),
          .stack = stack_of(question.software),
          .gpu = question.cluster.gpu().name,
          .year = question.software.year,
          .assumes_attention = assumes_attention(question),
          .assumes_plan = question.plan_is_assumed ||
                          (question.model.encoder && question.model.encoder->length_assumed),
          .recurs = question.model.layers.any(recurs)};
}

std::vector<RangeStep> steps_between(const std::vector<RunGroup>& groups, RunKind kind,
                                     const RunTraits& asked, std::string_view source) {
  bool stack = false, gpu = false;
  int first = 0, last = 0;
  for (const RunGroup& each : groups) {
    if (!is_of(each, kind) || each.run.stack != asked.stack) continue;
    if (!source.empty() && each.source == source) continue;
    first = stack ? std::min(first, each.run.year) : each.run.year;
    last = stack ? std::max(last, each.run.year) : each.run.year;
    stack = true;
    gpu = gpu || each.run.gpu == asked.gpu;
  }
  std::vector<RangeStep> steps;
  if (!stack) steps.push_back(RangeStep::stack);
  if (stack && !gpu) steps.push_back(RangeStep::gpu);
  const bool dated = stack && asked.year != 0;
  if (dated && (asked.year < first || asked.year > last)) steps.push_back(RangeStep::era);
  if (asked.assumes_attention) steps.push_back(RangeStep::attention);
  if (asked.assumes_plan) steps.push_back(RangeStep::plan);
  if (asked.recurs) steps.push_back(RangeStep::recurrence);
  return steps;
}

Evidence evidence_of(const RangeRecord& record, const RunTraits& asked) {
  const bool together = std::ranges::any_of(record.groups, [&](const RunGroup& each) {
    return each.run.stack == asked.stack && each.run.kinds == asked.kinds;
  });
  Evidence found{.kinds = asked.kinds};
  if (together) found.kinds.resize(1);
  found.steps = steps_between(record.groups, asked.kinds.front(), asked);
  count_nearest(record, asked, found);
  const bool unseen = found.stack.empty();
  const auto says_nothing = [&](RangeStep step) {
    const bool of_runs = step == RangeStep::stack || step == RangeStep::gpu;
    return !of_runs && record.spread(step) <= 0;
  };
  std::erase_if(found.steps, says_nothing);
  double between = 0;
  for (const RunKind kind : found.kinds) {
    const KindSpread& spread = record.kinds.at(kind);
    between += square_of(of_few_groups(spread.groups_behind) * spread.between);
  }
  const double within = record.kinds.at(asked.kinds.front()).within;
  const double away =
      std::sqrt(add_steps(record, between + square_of(within), found) - square_of(within));
  found.low = std::hypot((unseen ? record.unseen_low : 1) * away, within);
  found.high = std::hypot((unseen ? record.unseen_high : 1) * away, within);
  return found;
}

namespace {

/// Of models that are given as a list of operations: what 80 % of the published steps of five such
/// models keep, none of which a fit has seen.
/// Source  orrery validate on the rows of ResNet-50, SSD, RetinaNet, 3D U-Net and DLRM-DCNv2 in
///         scenarios/validation/lists.csv
Evidence evidence_of_lists() {
  return {.rows = 48, .groups = 5, .low = 0.31, .high = 0.45};
}

}  // namespace

Evidence evidence_for(const Question& question) {
  if (question.model.list) return evidence_of_lists();
  const RangeRecord& record = published_errors().ranges;
  const RunTraits asked = traits_of(question);
  const bool published = std::ranges::any_of(
      record.groups, [&](const RunGroup& each) { return each.run.stack == asked.stack; });
  const RunKind kind = asked.kinds.front();
  const bool own = !published && is_fitted(question.software) &&
                   (kind == RunKind::dense || kind == RunKind::sharded);
  return own ? evidence_of_own(record, asked, *question.software.residuals)
             : evidence_of(record, asked);
}

Evidence memory_evidence_for(const Question& question) {
  return evidence_of(published_errors().memory_ranges, traits_of(question));
}

std::string words_of(const Evidence& evidence) {
  std::vector<std::string> kinds, steps;
  if (evidence.kinds.empty()) {
    return fmt::format("{} run{} of {} models that are given by lists, which it was read from",
                       evidence.rows, evidence.rows == 1 ? "" : "s", evidence.groups);
  }
  for (const RunKind kind : evidence.kinds) kinds.emplace_back(word_of(run_kind_words, kind));
  for (std::size_t i = 0; i < evidence.steps.size(); ++i) {
    steps.push_back(fmt::format("{} (x {:.1f})", word_of(range_step_words, evidence.steps[i]),
                                evidence.factors[i]));
  }
  return fmt::format("{} run{} of {} in {} group{}{}{}{}{}", evidence.rows,
                     evidence.rows == 1 ? "" : "s", fmt::join(kinds, " with "), evidence.groups,
                     evidence.groups == 1 ? "" : "s",
                     evidence.stack.empty() ? "" : " with " + evidence.stack,
                     evidence.gpu.empty() ? "" : " on " + evidence.gpu, steps.empty() ? "" : "; ",
                     fmt::join(steps, ", "));
}

}  // namespace orrery::models
