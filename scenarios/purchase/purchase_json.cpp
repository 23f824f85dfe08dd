#include <fmt/format.h>

#include "scenarios/purchase/purchase_report.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/scenario/price_words.hpp"
#include "scenarios/search/comparison.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

Json choice_json(const PurchaseQuery& query, const PurchaseChoice& choice) {
  const models::Estimate& estimate = choice.plan.estimate;
  Json json;
  json["cluster"] = fmt::format("{} x {}", choice.node, choice.nodes);
  json["node"] = choice.node;
  json["also"] = choice.also;
  json["nodes"] = choice.nodes;
  json["gpus"] = choice.gpus;
  json["idle_gpus"] = choice.idle();
  const RunRange days =
      choice.day_range.value_or(RunRange{choice.days, choice.days, choice.days, 0});
  json["days"] = {{"p10", days.p10}, {"p50", days.p50}, {"p90", days.p90}};
  json["gpu_hours"] = choice.gpu_hours();
  const double dollars = choice.cost.value_or(Money{}).count();
  const RunRange cost = choice.cost_range.value_or(RunRange{dollars, dollars, dollars, 0});
  json["cost_usd"] =
      choice.cost ? Json{{"p10", cost.p10}, {"p50", cost.p50}, {"p90", cost.p90}} : Json(nullptr);
  if (choice.transfer_gb > 0) {
    json["between_zones"] = {{"gb", choice.transfer_gb}, {"cost_usd", choice.transfer.count()}};
  }
  if (choice.lane) json["data"] = wait_json(*choice.lane);
  json["meets"] = choice.meets;
  json["pareto"] = choice.pareto;
  json["price"] = price_json(choice.price);
  json["why_no_price"] = choice.price ? Json(nullptr) : Json(why_no_price(query, choice));
  json["plan"] = models::to_json(choice.plan.placed.plan);
  json["flag"] = models::to_text(choice.plan.placed.plan);
  json["step_time_s"] = seconds(estimate.step);
  json["tokens_per_s"] = estimate.tokens_per_second;
  json["mfu"] = estimate.mfu;
  json["peak_memory_bytes"] = estimate.memory.count();
  json["fit"] = models::name(estimate.fit);
  json["fit_probability"] = estimate.fit_probability;
  return json;
}

}  // namespace

Json to_json(const PurchaseReport& report) {
  const PurchaseQuery& query = report.query;
  Json json;
  json["model"] = query.plan.model.name;
  json["software"] = query.plan.software.name;
  json["tokens"] = query.tokens;
  json["global_batch"] = query.plan.global_batch;
  json["seq_len"] = query.plan.seq_len;
  json["precision"] = models::name(query.plan.precision);
  json["deadline_s"] =
      query.deadline_days ? Json(*query.deadline_days * seconds_per_day) : Json(nullptr);
  json["confidence"] = or_null(query.confidence);
  json["budget_usd"] = query.budget ? Json(query.budget->count()) : Json(nullptr);
  json["gpus_asked"] = query.gpus;
  json["meets"] = report.answer.meeting() > 0;
  const std::string reason = reason_of(report.answer);
  json["reason"] = or_null(reason);
  json["choices"] = Json::array();
  for (const PurchaseChoice& each : report.answer.choices)
    json["choices"].push_back(choice_json(query, each));
  json["impossible"] = Json::array();
  for (const Impossible& each : report.answer.impossible) {
    json["impossible"].push_back({{"cluster", fmt::format("{} x {}", each.node, each.nodes)},
                                  {"node", each.node},
                                  {"nodes", each.nodes},
                                  {"reason", each.reason}});
  }
  json["indistinguishable_pct"] = 100 * indistinguishable(query.plan.software).others;
  json["headroom"] = query.plan.headroom;
  json["sharded_error"] = sharded_json();
  json["plans"] = report.answer.plans;
  json["stopped"] = report.answer.stopped;
  json["assumptions"] = report.assumptions;
  return json;
}

}  // namespace orrery::scenarios
