#include <algorithm>
#include <limits>

#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/search/best_of_many.hpp"
#include "scenarios/search/plan_report.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "scenarios/search/space/unsearched.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

Json out_of_memory_json(const models::OutOfMemory& found) {
  return {{"rank", found.rank},
          {"needed_bytes", found.needed.count()},
          {"available_bytes", found.available.count()},
          {"of", word_of(models::memory_place_words, found.place)}};
}

Json plans_json(const std::vector<models::Plan>& plans) {
  Json list = Json::array();
  for (const models::Plan& each : plans) list.push_back(models::to_json(each));
  return list;
}

Json plan_json(const RankedPlan& ranked, const PlanQuery& query, std::optional<double> tokens) {
  const models::Estimate& estimate = ranked.candidate.figures();
  Json parts = Json::object();
  for (const models::WaterfallPart& part : ranked.against_best) {
    if (part.time != Time{}) parts[part.name] = seconds(part.time);
  }
  Json json;
  json["plan"] = models::to_json(ranked.candidate.placed.plan);
  json["flag"] = flag_of(query, ranked.candidate.placed.plan);
  json["nodes"] = ranked.candidate.placed.nodes;
  json["idle_nodes"] = query.cluster.nodes - ranked.candidate.placed.nodes;
  json["gpus"] = ranked.candidate.placed.plan.gpus();
  json["step_time_s"] = seconds(estimate.step);
  json["static_step_time_s"] = seconds(ranked.candidate.estimate.step);
  const auto& shared = ranked.candidate.shared;
  json["network_step_time_s"] = shared ? Json(seconds(shared->figures.step)) : Json(nullptr);
  json["contention_s"] = shared ? Json(seconds(shared->contention)) : Json(nullptr);
  json["tokens_per_s"] = estimate.tokens_per_second;
  json["mfu"] = estimate.mfu;
  json["peak_memory_bytes"] = estimate.memory.count();
  json["fit"] = models::name(estimate.fit);
  json["fit_probability"] = estimate.fit_probability;
  json["cost_usd_per_step"] = estimate.cost ? Json(estimate.cost->count()) : Json(nullptr);
  json["energy_j_per_step"] = estimate.energy.count();
  if (const auto lane = lane_of(query, ranked.candidate.placed)) json["data"] = wait_json(*lane);
  if (tokens) {
    const double days = *tokens / estimate.tokens_per_second / seconds_per_day;
    json["days"] = days;
    json["gpu_hours"] = 24 * days * static_cast<double>(ranked.candidate.placed.plan.gpus());
    const double steps = *tokens / estimate.tokens_per_second / seconds(estimate.step);
    json["cost_usd"] = estimate.cost ? Json(steps * estimate.cost->count()) : Json(nullptr);
  }
  json["excess_pct"] = 100 * ranked.excess;
  json["as_good_as_best"] = ranked.as_good;
  json["against_best_s"] = parts;
  json["why"] = why(ranked);
  json["equals"] = plans_json(ranked.candidate.equals);
  return json;
}

Json searched_json(const PlanAnswer& answer) {
  Json json = Json::object();
  for (const SearchedValues& each : answer.searched) {
    if (!each.values.empty()) json[std::string{each.key}] = each.values;
  }
  return json;
}

Json not_searched_json(const PlanReport& report) {
  const models::Plan& shown =
      report.best.empty() ? report.query.fixed : report.best.front().candidate.placed.plan;
  Json list = Json::array();
  for (const UnsearchedField& each : unsearched(report.query, shown)) {
    list.push_back({{"field", each.key}, {"value", each.value}, {"why", words_of(each.why)}});
  }
  return list;
}

Json fixed_json(const PlanQuery& query) {
  Json json = Json::object();
  for (const std::string& key : query.stated) {
    json[key] = value_in(models::plan_field(key), query.fixed);
  }
  return json;
}

Json excluded_json(const PlanQuery& query) {
  Json list = Json::array();
  for (const ExcludedValue& each : query.excluded) {
    list.push_back({{"field", each.key}, {"value", each.value}});
  }
  return list;
}

/// The best plan of a kind, by the figures that rank; null if the best of all is of that kind.
Json kind_json(const PlanReport& report, const PlanKind& kind) {
  const Candidate* found = best_of_kind(report.query, report.answer, kind);
  if (found == nullptr) return nullptr;
  const Candidate& best = report.answer.fitting.front();
  return {{"plan", models::to_json(found->placed.plan)},
          {"flag", flag_of(report.query, found->placed.plan)},
          {"nodes", found->placed.nodes},
          {"step_time_s", seconds(found->figures().step)},
          {"static_step_time_s", seconds(found->estimate.step)},
          {"excess_pct", 100 * excess_over(best, *found, report.objective)}};
}

/// The certificate: no plan that fits as well as the best one, with the values that were searched,
/// has a shorter step than bound_s, by the figure that ranks. Null for other objectives, and where
/// the search was stopped before there was a bound.
void add_bound(const PlanReport& report, Json& json) {
  json["bound_s"] = json["gap"] = json["proven"] = json["proven_static"] = nullptr;
  const bool timed = report.objective.name == "time";
  const auto certificate = certificate_of(report.answer, report.objective);
  if (!timed || !certificate) return;
  json["bound_s"] = certificate->bound;
  json["gap"] = certificate->gap;
  json["proven"] = certificate->proven;
  json["proven_static"] = certificate->searched;
}

Json classes_json(const PlanReport& report) {
  std::int64_t open = 0;
  Json list = Json::array();
  for (const PlanClass& each : classes_of(report.query, report.answer, report.objective, open)) {
    const models::Plan& plan = each.best->placed.plan;
    Json free = Json::object();
    for (const SearchedValues& field : each.free) free[std::string{field.key}] = field.values;
    list.push_back({{"tensor", plan.tensor},
                    {"pipeline", plan.pipeline},
                    {"micro_batch", plan.batch.micro},
                    {"flag", flag_of(report.query, plan)},
                    {"plans", each.plans},
                    {"excess_pct", 100 * each.excess},
                    {"free", std::move(free)}});
  }
  return {{"classes", std::move(list)}, {"at_most_more", open}};
}

/// The Pareto front by static figures; null where none was asked for.
Json front_json(const PlanReport& report) {
  if (report.against == nullptr) return nullptr;
  Json plans = Json::array();
  for (const Candidate* each : front_of(report.answer, report.objective, *report.against)) {
    const models::Estimate& estimate = each->estimate;
    plans.push_back(
        {{"plan", models::to_json(each->placed.plan)},
         {"flag", flag_of(report.query, each->placed.plan)},
         {"nodes", each->placed.nodes},
         {"static_step_time_s", seconds(estimate.step)},
         {"peak_memory_bytes", estimate.memory.count()},
         {"cost_usd_per_step", estimate.cost ? Json(estimate.cost->count()) : Json(nullptr)},
         {"energy_j_per_step", estimate.energy.count()}});
  }
  return {{"objective", report.objective.name},
          {"against", report.against->name},
          {"plans", std::move(plans)}};
}

/// The plans on other stacks; null where one was named. Plans have their numbers, from 1.
Json stacks_json(const PlanReport& report) {
  const OverStacks& found = report.over_stacks;
  if (found.empty()) return nullptr;
  Json stacks = Json::array();
  for (const PlansOnStack& each : found.stacks) {
    Json plans = Json::array();
    for (std::size_t i = 0; i < each.estimates.size(); ++i) {
      if (!each.estimates[i]) continue;
      plans.push_back({{"plan", i + 1}, {"static_step_time_s", seconds(each.estimates[i]->step)}});
    }
    stacks.push_back(
        {{"software", each.software}, {"best_plan", each.best + 1}, {"plans", std::move(plans)}});
  }
  return {{"stacks", std::move(stacks)},
          {"robust_plan", found.robust + 1},
          {"robust_worst_excess_pct", 100 * found.worst[found.robust]},
          {"first_worst_excess_pct", 100 * found.worst.front()}};
}

Json nearest_miss_json(const std::optional<NearMiss>& miss) {
  if (!miss) return nullptr;
  Json json;
  json["plan"] = models::to_json(miss->placed.plan);
  json["flag"] = models::to_text(miss->placed.plan);
  json["nodes"] = miss->placed.nodes;
  json["out_of_memory"] = out_of_memory_json(miss->out_of_memory);
  return json;
}

}  // namespace

Json to_json(const PlanReport& report) {
  const PlanAnswer& answer = report.answer;
  const bool fits = !answer.fitting.empty();
  const std::string reason = reason_of(report.query, answer);
  const auto& miss = answer.nearest_miss;
  Json json;
  json["model"] = report.query.model.name;
  json["cluster"] = report.cluster;
  json["software"] = report.query.software.name;
  json["global_batch"] = report.query.global_batch;
  json["seq_len"] = report.query.seq_len;
  json["precision"] = models::name(report.query.precision);
  json["objective"] = report.objective.name;
  json["fits"] = fits;
  const models::Fit fit = fits ? answer.fitting.front().estimate.fit : models::Fit::no;
  json["fit"] = models::name(fit);
  json["headroom"] = report.query.headroom;
  json["reason"] = or_null(reason);
  json["out_of_memory"] = fits || !miss ? Json(nullptr) : out_of_memory_json(miss->out_of_memory);
  json["available_memory_bytes"] = report.query.cluster.gpu().memory.count();
  json["plans"] = Json::array();
  const PlanQuery& query = report.query;
  for (const RankedPlan& each : report.best)
    json["plans"].push_back(plan_json(each, query, report.tokens));
  json["tight_plans"] = Json::array();
  for (const RankedPlan& each : report.tight_ahead) {
    json["tight_plans"].push_back(plan_json(each, query, report.tokens));
  }
  const Indistinguishable gaps = indistinguishable(report.query.software);
  json["indistinguishable_pct"] = 100 * gaps.others;
  json["indistinguishable_alike_pct"] = 100 * gaps.alike;
  const ExpectedStep expected = expected_of(answer, report.objective);
  json["expected_step_time_s"] = fits ? Json(seconds(expected.step)) : Json(nullptr);
  json["alike"] = expected.rivals;
  const auto published = highest_published(report.query);
  json["highest_published_mfu"] = published ? Json(published->mfu) : Json(nullptr);
  json["sharded_error"] = sharded_json();
  json["counts"] = {{"considered", answer.considered},
                    {"fit", answer.fits()},
                    {"tight", answer.tight()},
                    {"too_large", answer.too_large},
                    {"too_large_by_sizes", answer.too_large_by_sizes},
                    {"passed_over", answer.passed_over},
                    {"too_slow", answer.too_slow},
                    {"conflicting", answer.conflicting}};
  add_bound(report, json);
  json["tokens"] = report.tokens ? Json(*report.tokens) : Json(nullptr);
  json["front"] = front_json(report);
  json["as_good"] = classes_json(report);
  json["over_stacks"] = stacks_json(report);
  for (const PlanKind& kind : named_kinds()) {
    json[std::string{kind.key}] = kind_json(report, kind);
  }
  json["searched"] = searched_json(answer);
  json["not_searched"] = not_searched_json(report);
  json["fixed"] = fixed_json(report.query);
  json["excluded"] = excluded_json(report.query);
  json["stopped"] = answer.stopped;
  json["nearest_miss"] = nearest_miss_json(miss);
  json["advice"] = to_json(report.advice);
  json["assumptions"] = report.assumptions;
  return json;
}

}  // namespace orrery::scenarios
