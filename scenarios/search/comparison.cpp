#include "scenarios/search/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>
#include <tuple>

#include "models/model/model_file.hpp"
#include "models/prediction/error/published_errors.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// The parts of the step on shared links, or of the step as it was searched.
std::vector<models::WaterfallPart> waterfall_of(const PlanQuery& query, const Candidate& plan,
                                                bool on_links) {
  if (on_links && plan.shared) return plan.shared->waterfall;
  return models::predict(question_of(query, plan.placed)).waterfall;
}

/// Waterfall parts less the best plan's. `gpus` is the ratio of GPUs to the best plan's.
std::vector<models::WaterfallPart> difference(std::vector<models::WaterfallPart> parts, double gpus,
                                              const std::vector<models::WaterfallPart>& best) {
  ensure(parts.size() == best.size(), "waterfalls have the same parts");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].time = scaled(parts[i].time, gpus) - best[i].time;
  }
  return parts;
}

}  // namespace

double excess_over(const Candidate& best, const Candidate& plan, const Objective& objective) {
  if (is_on_links(best) && (is_on_links(plan) || plan.least_shared)) {
    const double measure = is_on_links(plan) ? measure_of(objective, plan) : *plan.least_shared;
    return measure / measure_of(objective, best) - 1;
  }
  return objective.measure(plan.estimate) / objective.measure(best.estimate) - 1;
}

namespace {

/// Ranks candidates relative to the best one of an answer.
std::vector<RankedPlan> against_best(const PlanQuery& query, const Candidate& best,
                                     const Objective& objective,
                                     const std::vector<const Candidate*>& candidates) {
  std::vector<RankedPlan> ranked;
  std::vector<models::WaterfallPart> shared, searched;  // of the best, where they are needed
  const Indistinguishable gaps = indistinguishable(query.software);
  for (const Candidate* each : candidates) {
    const double excess = excess_over(best, *each, objective);
    const bool on_links = is_on_links(best) && is_on_links(*each);
    std::vector<models::WaterfallPart>& parts = on_links ? shared : searched;
    if (parts.empty()) parts = waterfall_of(query, best, on_links);
    ranked.push_back({.candidate = *each,
                      .excess = excess,
                      .as_good = excess <= gaps.of(best.placed.plan, each->placed.plan),
                      .against_best = difference(
                          waterfall_of(query, *each, on_links),
                          static_cast<double>(each->placed.nodes) / best.placed.nodes, parts)});
  }
  return ranked;
}

/// Expected largest of n standard normal errors (Blom's formula).
double expected_maximum(std::size_t n) {
  const auto count = static_cast<double>(n);
  // Phi^-1 by bisection of erfc: fast enough, a search calls it once.
  const double share = (count - 0.375) / (count + 0.25);
  double low = -8, high = 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const bool below = std::erfc(-middle / std::sqrt(2.0)) / 2 < share;
    (below ? low : high) = middle;
  }
  return low;
}

}  // namespace

ExpectedStep expected_of(const PlanAnswer& answer, const Objective& objective) {
  if (answer.fitting.empty()) return {};
  const Candidate& best = answer.fitting.front();
  const double spread = models::published_errors().fitted.plan_spread / 100;
  const double most = objective.measure(best.estimate) * (1 + spread);
  std::set<ModelCut> cuts;
  for (const Candidate& each : answer.fitting) {
    const models::Plan& plan = each.placed.plan;
    if (each.estimate.fit != best.estimate.fit || objective.measure(each.estimate) > most) continue;
    cuts.insert(cut_of(plan));
  }
  const double selection_bias = spread * std::max(0.0, expected_maximum(cuts.size()));
  return {.step = scaled(best.figures().step, std::exp(selection_bias)), .rivals = cuts.size()};
}

std::optional<Certificate> certificate_of(const PlanAnswer& answer, const Objective& objective) {
  if (answer.fitting.empty() || !answer.bounded) return std::nullopt;
  const Candidate& front = answer.fitting.front();
  const bool on_links = std::ranges::any_of(
      answer.fitting, [](const Candidate& each) { return each.shared.has_value(); });
  double searched = objective.measure(front.estimate);
  double bound = measure_of(objective, front);
  for (const Candidate& each : answer.fitting) {
    if (each.estimate.fit != front.estimate.fit) continue;
    searched = std::min(searched, objective.measure(each.estimate));
    const double least = each.least_shared.value_or(measure_of(objective, each));
    bound = std::min(bound, on_links ? least : objective.measure(each.estimate));
  }
  bound = std::min(bound, answer.least_open());
  const double best = measure_of(objective, front);
  return Certificate{.bound = bound,
                     .gap = 1 - bound / best,
                     .proven = bound >= best,
                     .searched = answer.least_open() >= searched};
}

namespace {

/// The searched fields, other than those of a cut, in which plans of a class differ.
std::vector<SearchedValues> free_choices(const PlanQuery& query,
                                         const std::vector<const models::Plan*>& plans) {
  std::vector<SearchedValues> free;
  for (const std::string_view key : searched_keys(query)) {
    constexpr std::string_view of_cut[] = {"tensor", "pipeline", "micro_batch"};
    if (std::ranges::find(of_cut, key) != std::end(of_cut)) continue;
    SearchedValues found{key, {}};
    for (const models::Plan* each : plans) {
      Json value = value_in(models::plan_field(key), *each);
      if (std::ranges::find(found.values, value) != found.values.end()) continue;
      found.values.push_back(std::move(value));
    }
    if (found.values.size() > 1) free.push_back(std::move(found));
  }
  return free;
}

}  // namespace

std::vector<PlanClass> classes_of(const PlanQuery& query, const PlanAnswer& answer,
                                  const Objective& objective, std::int64_t& open) {
  open = 0;
  if (answer.fitting.empty()) return {};
  const Candidate& best = answer.fitting.front();
  const Indistinguishable gaps = indistinguishable(query.software);
  std::vector<PlanClass> classes;
  std::vector<std::vector<const models::Plan*>> members;
  for (const Candidate& each : answer.fitting) {
    const double excess = excess_over(best, each, objective);
    const bool alike = each.estimate.fit == best.estimate.fit;
    if (!alike || excess > gaps.of(best.placed.plan, each.placed.plan)) continue;
    const ModelCut cut = cut_of(each.placed.plan);
    auto own = std::ranges::find_if(
        classes, [&](const PlanClass& other) { return cut_of(other.best->placed.plan) == cut; });
    if (own == classes.end()) {
      own = classes.insert(own, {.best = &each, .excess = excess, .plans = 0, .free = {}});
      members.emplace_back();
    }
    own->plans += 1 + std::ssize(each.equals);
    std::vector<const models::Plan*>& plans =
        members[static_cast<std::size_t>(own - classes.begin())];
    plans.push_back(&each.placed.plan);
    for (const models::Plan& equal : each.equals) plans.push_back(&equal);
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    classes[i].free = free_choices(query, members[i]);
  }
  const double least = objective.measure(best.estimate);
  for (const OpenPlan& each : answer.open) {
    const double gap = each.cut == cut_of(best.placed.plan) ? gaps.alike : gaps.others;
    open += each.bound <= least * (1 + gap) ? 1 : 0;
  }
  return classes;
}

double Indistinguishable::of(const models::Plan& best, const models::Plan& plan) const {
  return cut_of(best) == cut_of(plan) ? alike : others;
}

Indistinguishable indistinguishable(const models::Software& software) {
  const models::PublishedErrors& record = models::published_errors();
  if (is_fitted(software)) {
    return {record.fitted.gap_of_alike / 100, record.fitted.gap_of_others / 100};
  }
  return {record.unfitted.gap_of_alike / 100, record.unfitted.mean_regret / 100};
}

std::string words_of_ties(const models::Software& software) {
  const models::PublishedErrors& record = models::published_errors();
  if (is_fitted(software)) {
    return fmt::format(
        "the errors of two published plans of one model differed by that much in half of the "
        "cases; of plans measured more than 5 % apart, {:.0f} % of pairs were in the predicted "
        "order",
        record.fitted.pairs_in_order);
  }
  const models::Evidence spread = models::evidence_of(
      record.ranges, {.kinds = {models::RunKind::dense}, .stack = software.name});
  return fmt::format(
      "with a profile that is not fitted to its stack, the published plan predicted fastest took "
      "that much longer than the fastest one, and {:.0f} % of pairs were in the predicted order. "
      "The errors of single steps are larger, {:+.0f} to {:+.0f} % in 8 of 10 cases; an error "
      "common to all plans does not change their order",
      record.unfitted.pairs_in_order, 100 * std::expm1(-spread.low), 100 * std::expm1(spread.high));
}

std::vector<RankedPlan> compare_best(const PlanQuery& query, const PlanAnswer& answer,
                                     const Objective& objective, std::size_t top) {
  if (answer.fitting.empty()) return {};
  std::vector<const Candidate*> first;
  for (std::size_t i = 0; i < std::min(top, answer.fitting.size()); ++i) {
    first.push_back(&answer.fitting[i]);
  }
  return against_best(query, answer.fitting.front(), objective, first);
}

std::vector<RankedPlan> tight_ahead(const PlanQuery& query, const PlanAnswer& answer,
                                    const Objective& objective, std::size_t top) {
  if (answer.fitting.empty()) return {};
  const Candidate& best = answer.fitting.front();
  if (best.estimate.fit == models::Fit::tight) return {};
  std::vector<const Candidate*> ahead;
  for (const Candidate& each : answer.fitting) {
    const bool tight = each.estimate.fit == models::Fit::tight;
    if (tight && ahead.size() < top && excess_over(best, each, objective) < 0) {
      ahead.push_back(&each);
    }
  }
  return against_best(query, best, objective, ahead);
}

std::string why(const RankedPlan& plan) {
  constexpr std::size_t most = 3;
  constexpr std::int64_t negligible = 100;  // a hundredth of the largest part
  const auto size = [](const models::WaterfallPart& part) { return std::abs(part.time.count()); };
  std::vector<models::WaterfallPart> parts = plan.against_best;
  std::ranges::stable_sort(parts, std::greater{}, size);
  if (parts.empty() || size(parts.front()) == 0) return {};
  const std::int64_t least = std::max<std::int64_t>(1, size(parts.front()) / negligible);
  parts.resize(std::min(parts.size(), most));
  std::stable_partition(parts.begin(), parts.end(),
                        [](const auto& part) { return part.time > Time{}; });
  std::string text;
  for (const models::WaterfallPart& part : parts) {
    if (size(part) < least) continue;
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", part.time > Time{} ? "+" : "-",
                        step_part(Time{size(part)}, plan.candidate.estimate.step), part.name);
  }
  return text;
}

std::vector<std::string> search_assumptions(const PlanQuery& query) {
  const models::RunnablePlans& runs = query.software.runs;
  std::string tried;
  for (const SearchDimension& each : search_dimensions()) {
    const bool of_experts = each.refines && usual_experts(query.model).count == 0;
    if (of_experts || (each.runs && !each.runs(runs))) continue;
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", each.name);
  }
  std::vector<std::string> lines{fmt::format("tried: {}, data; schedules {} and {}", tried,
                                             models::default_schedule(1),
                                             models::default_schedule(2))};
  const bool in_pipelines =
      query.breadth == Breadth::full && query.software.runs.shards_in_pipelines;
  lines.push_back(fmt::format("ZeRO stages of {}: {}{}{}", query.software.name,
                              models::stages_of(runs),
                              runs.source.empty() ? " (its profile states none)" : "",
                              in_pipelines ? "" : "; 2 and 3 (FSDP) only without a pipeline"));
  lines.push_back(
      query.breadth == Breadth::full
          ? "micro-batches are divisors up to 16; virtual stages up to 8 that cut the "
            "layers evenly, embedding and head counted as a layer each or not; full "
            "recomputation of all layers of a chunk, and of the first quarter, half and "
            "three quarters of them"
          : "reduced list: micro-batches and virtual stages 1, 2 and 4; sequence "
            "parallelism and ZeRO-1 wherever they apply");
  using models::Dispatcher;
  const auto same = [](Dispatcher each) { return each != Dispatcher::all_to_all; };
  if (usual_experts(query.model).count > 0 && std::ranges::count_if(runs.dispatchers, same) > 1) {
    lines.push_back(
        "dispatchers other than alltoall are priced alike; the first of the stack is tried");
  }
  lines.push_back("ranks are placed tensor first, then data, then pipeline");
  lines.push_back(
      "of plans with the same step time those without recomputation come first; plans that cut the "
      "model alike and whose step differs by at most 0.01 % and memory by 0.5 % are shown as one");
  for (const std::string& each : query.cluster.assumptions) lines.push_back("/cluster: " + each);
  for (std::string& each : models::assumptions_said(query.model)) lines.push_back(std::move(each));
  for (std::string& each : models::unused_keys_said(query.model)) lines.push_back(std::move(each));
  return lines;
}

}  // namespace orrery::scenarios
