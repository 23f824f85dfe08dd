#include "scenarios/search/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "scenarios/report/sections.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

std::vector<models::WaterfallPart> waterfall_of(const PlanQuery& query, const Candidate& plan) {
  return models::predict(question_of(query, plan.placed)).waterfall;
}

/// `gpus`: over those of the best plan.
std::vector<models::WaterfallPart> difference(std::vector<models::WaterfallPart> parts, double gpus,
                                              const std::vector<models::WaterfallPart>& best) {
  ensure(parts.size() == best.size(), "waterfalls have the same parts");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].time = scaled(parts[i].time, gpus) - best[i].time;
  }
  return parts;
}

}  // namespace

std::vector<RankedPlan> compare_best(const PlanQuery& query, const PlanAnswer& answer,
                                     Objective objective, std::size_t top) {
  std::vector<RankedPlan> ranked;
  if (answer.fitting.empty()) return ranked;
  const Candidate& best = answer.fitting.front();
  const std::vector<models::WaterfallPart> parts = waterfall_of(query, best);
  const double least = measure(best.estimate, objective);
  for (std::size_t i = 0; i < std::min(top, answer.fitting.size()); ++i) {
    const Candidate& each = answer.fitting[i];
    const double excess = measure(each.estimate, objective) / least - 1;
    ranked.push_back({.candidate = each,
                      .excess = excess,
                      .as_good = excess <= indistinguishable,
                      .against_best = difference(
                          waterfall_of(query, each),
                          static_cast<double>(each.placed.nodes) / best.placed.nodes, parts)});
  }
  return ranked;
}

std::string why(const RankedPlan& plan) {
  constexpr std::size_t most = 3;
  constexpr std::int64_t negligible = 100;  // parts of the largest
  const auto size = [](const models::WaterfallPart& part) { return std::abs(part.time.count()); };
  std::vector<models::WaterfallPart> parts = plan.against_best;
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
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

std::string words_of(const models::Plan& plan) {
  return fmt::format("TP {}{} · PP {}{} · DP {}{} · micro-batch {} · recompute {}", plan.tensor,
                     plan.sequence_parallel ? " + SP" : "", plan.pipeline,
                     plan.virtual_stages > 1 ? fmt::format(" x {}", plan.virtual_stages) : "",
                     plan.data, plan.zero == models::Zero::one ? " ZeRO-1" : "", plan.micro_batch,
                     models::name(plan.recompute));
}

std::string flag_of(const models::Plan& plan) {
  std::string text = fmt::format("tensor={}", plan.tensor);
  if (plan.sequence_parallel) text += ",sequence=true";
  text += fmt::format(",pipeline={}", plan.pipeline);
  if (plan.virtual_stages > 1) text += fmt::format(",virtual_stages={}", plan.virtual_stages);
  text += fmt::format(",data={}", plan.data);
  if (plan.zero == models::Zero::one) text += ",zero=1";
  return text + fmt::format(",micro_batch={},global_batch={},seq_len={},precision={},recompute={}",
                            plan.micro_batch, plan.global_batch, plan.seq_len,
                            models::name(plan.precision), models::name(plan.recompute));
}

std::vector<std::string> search_assumptions(const PlanQuery& query) {
  std::vector<std::string> told{
      "tried: tensor within a node, pipeline, virtual stages, data, ZeRO-1, recomputation, "
      "micro-batch, sequence parallelism; schedules 1f1b and interleaved-1f1b"};
  told.push_back(query.breadth == Breadth::full
                     ? "micro-batches are divisors up to 16; virtual stages up to 8 that cut the "
                       "layers evenly, embedding and head counted as a layer each or not"
                     : "reduced list: micro-batches and virtual stages 1, 2 and 4; sequence "
                       "parallelism and ZeRO-1 wherever they apply");
  told.push_back("ranks are placed tensor first, then data, then pipeline");
  told.push_back("plans with the same step and the same memory are shown as one, the plainest");
  for (const std::string& each : query.cluster.assumptions) told.push_back("/cluster: " + each);
  for (const std::string& key : query.model.ignored_keys) {
    told.push_back(fmt::format("/model/{}: not used", key));
  }
  return told;
}

}  // namespace orrery::scenarios
