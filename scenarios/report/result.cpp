#include "scenarios/report/result.hpp"

#include "models/plan/derived.hpp"
#include "models/prediction/power.hpp"
#include "scenarios/report/memory_advice.hpp"
#include "scenarios/report/open_questions.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/scenario/price_words.hpp"
#include "sim/input/units.hpp"
#include "sim/mean_and_spread.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

Json breakdown_json(const models::Breakdown& breakdown) {
  Json parts = Json::object();
  for (int i = 0; i < models::time_class_count; ++i) {
    parts[std::string{models::name(static_cast<models::TimeClass>(i))}] =
        seconds(breakdown[static_cast<std::size_t>(i)]);
  }
  return parts;
}

Json memory_json(const models::StageMemory& memory) {
  Json kinds = Json::object();
  for (int i = 0; i < models::buffer_kind_count; ++i) {
    kinds[std::string{models::name(static_cast<models::BufferKind>(i))}] =
        memory.program[static_cast<std::size_t>(i)].count();
  }
  kinds["context"] = memory.context.count();
  kinds["fragmentation"] = memory.fragmentation.count();
  return kinds;
}

Json out_of_memory_json(const std::optional<models::OutOfMemory>& found) {
  if (!found) return nullptr;
  return {{"rank", found->rank},
          {"needed_bytes", found->needed.count()},
          {"available_bytes", found->available.count()},
          {"of", word_of(models::memory_place_words, found->place)}};
}

Json busy_json(const models::Busy& busy) {
  return {{"nic", busy.nic}, {"nvlink", busy.nvlink}, {"sm", busy.sm}};
}

Json waterfall_json(const std::vector<models::WaterfallPart>& parts) {
  Json waterfall = Json::array();
  for (const models::WaterfallPart& part : parts) {
    waterfall.push_back({{"name", part.name}, {"time_s", seconds(part.time)}});
  }
  return waterfall;
}

void put_price(const hardware::Cluster& cluster, Json& json) {
  const bool priced = cluster.price_per_gpu_hour.has_value();
  json["price_usd_per_gpu_hour"] =
      priced ? Json(cluster.price_per_gpu_hour->count()) : Json(nullptr);
  json["price_source"] = priced ? Json(cluster.price_source) : Json(nullptr);
  json["price"] = price_json(hardware::price_of(cluster));
}

void put_totals(const models::Question& question, const models::Prediction& prediction,
                std::optional<double> tokens, Json& json) {
  std::optional<TrainingTotals> totals;
  if (tokens) totals = totals_of(question, prediction, *tokens);
  json["tokens"] = or_null(tokens);
  json["days"] = totals ? Json(totals->days) : Json(nullptr);
  json["gpu_hours"] = totals ? Json(totals->gpu_hours) : Json(nullptr);
  json["cost_usd"] = totals && totals->cost ? Json(totals->cost->count()) : Json(nullptr);
}

/// What keeps a prediction from being more certain; empty if nothing does.
Json limits_json(const hardware::Gpu& gpu) {
  return gpu.unmeasured.empty() ? Json::array() : Json::array({gpu.unmeasured});
}

Json questions_json(const models::Question& question, Time step) {
  Json open = Json::array();
  for (const OpenQuestion& each : open_questions(question, step)) {
    open.push_back({{"question", each.question}, {"change_pct", 100 * each.change}});
  }
  return open;
}

Json plainer_json(const models::Question& question, const models::Prediction& prediction) {
  Json choices = Json::array();
  for (const PlainerChoice& each : plainer_choices(question, prediction)) {
    choices.push_back({{"choice", each.choice},
                       {"step_time_s", seconds(each.step)},
                       {"parts", waterfall_json(each.parts)},
                       {"reason", each.reason}});
  }
  return choices;
}

}  // namespace

namespace {

/// Null where no phases were asked for.
Json phases_json(const models::PhasesAnswer& phases) {
  if (phases.steps.empty()) return nullptr;
  const MeanAndSpread steps = mean_and_spread(phases.steps);
  const MeanAndSpread contention = mean_and_spread(phases.contention);
  Json each = Json::array();
  for (const Time step : phases.steps) each.push_back(seconds(step));
  return {{"count", phases.asked.count},
          {"seed", phases.asked.seed},
          {"launch_delay_s", seconds(phases.asked.delay)},
          {"representative", phases.representative},
          {"mean_step_time_s", steps.mean},
          {"deviation_s", steps.deviation},
          {"standard_error_s", steps.error},
          {"mean_contention_s", contention.mean},
          {"contention_deviation_s", contention.deviation},
          {"step_times_s", each}};
}

}  // namespace

Json to_json(const models::NetworkAnswer& network) {
  Json links = Json::array(), losses = Json::array();
  for (const models::FullLinks& each : network.links) {
    links.push_back({{"name", each.name},
                     {"alike", each.alike},
                     {"over_capacity_s", seconds(each.overloaded)}});
  }
  for (const models::TrafficLoss& each : network.losses) {
    Json to = Json::object();
    for (const auto& [name, share] : each.to) to[name] = share;
    losses.push_back({{"name", each.name}, {"lost_s", seconds(each.lost)}, {"to", to}});
  }
  Json jobs = Json::array();
  for (const models::JobAnswer& each : network.jobs) {
    jobs.push_back({{"name", each.name},
                    {"gpus", each.gpus},
                    {"shares_links", each.shares_links},
                    {"alone_s", seconds(each.alone)},
                    {"step_time_s", each.step ? Json(seconds(*each.step)) : Json(nullptr)}});
  }
  return {{"evaluation", network.evaluation},
          {"why", network.why},
          {"contention_s", seconds(network.contention)},
          {"jitter_s", seconds(network.jitter)},
          {"from_jobs_s", seconds(network.from_jobs)},
          {"jobs", jobs},
          {"links", links},
          {"losses", losses},
          {"phases", phases_json(network.phases)}};
}

Json wall_time_json(const models::Prediction& prediction, double load_seconds) {
  return {{"load", load_seconds},
          {"lower", prediction.lower_seconds},
          {"check", prediction.check_seconds},
          {"network", prediction.network.evaluation == "static" ? Json(nullptr)
                                                                : Json(prediction.network.seconds)},
          {"simulate", prediction.simulate_seconds}};
}

TrainingTotals totals_of(const models::Question& question, const models::Prediction& prediction,
                         double tokens) {
  return totals_of(question.plan.gpus(), prediction, tokens);
}

TrainingTotals totals_of(std::int64_t gpus, const models::StepFigures& step, double tokens) {
  const double steps = tokens / step.tokens_per_second / seconds(step.step);
  const double days = tokens / step.tokens_per_second / seconds_per_day;
  TrainingTotals totals{.days = days, .gpu_hours = days * 24 * static_cast<double>(gpus)};
  if (step.cost) totals.cost = Money{step.cost->count() * steps};
  return totals;
}

Json to_json(const models::Question& question, const models::Prediction& prediction,
             std::optional<double> tokens) {
  const double step = seconds(prediction.step);
  const auto gpus = static_cast<double>(question.plan.gpus());
  const models::StageMemory& fullest = prediction.memory.at(prediction.fullest);
  Json json;
  json["step_time_s"] = step;
  json["lower_bound_s"] = seconds(prediction.network.lower_bound);
  json["tokens_per_s"] = prediction.tokens_per_second;
  json["tokens_per_s_per_gpu"] = prediction.tokens_per_second / gpus;
  json["unit"] = std::string{models::unit_word(question.model)};
  json["model_tflops_per_gpu"] = prediction.model_flops / step / gpus / 1e12;
  json["mfu"] = prediction.mfu;
  json["hfu"] = prediction.hfu;
  json["peak_memory_bytes"] = fullest.total.count();
  json["memory"] = memory_json(fullest);
  const bool fits = prediction.fit != models::Fit::no;
  const models::PeakRange peaks = models::peak_range(fullest.total, prediction.memory_evidence);
  json["peak_memory_range_bytes"] = {{"least", fullest.need.least.count()},
                                     {"most", fullest.need.most.count()},
                                     {"p10", peaks.p10.count()},
                                     {"p90", peaks.p90.count()}};
  json["memory_evidence"] = to_json(prediction.memory_evidence);
  json["reported_memory_bytes"] = fullest.reported.count();
  json["fits"] = fits;
  json["fit"] = models::name(prediction.fit);
  json["fit_probability"] = prediction.fit_probability;
  json["headroom"] = question.headroom;
  json["out_of_memory"] = fits ? Json(nullptr) : out_of_memory_json(prediction.out_of_memory);
  json["advice"] = to_json(memory_advice(question, prediction.fit));
  json["breakdown"] = breakdown_json(prediction.breakdown);
  if (prediction.data) json["breakdown"]["data"] = seconds(prediction.data_wait());
  json["busy"] = busy_json(prediction.busy);
  json["bubble_fraction"] = prediction.bubble_fraction();
  json["bottleneck"] = std::string{prediction.bottleneck_name()};
  if (prediction.data) json["data"] = data_json(*question.data, *prediction.data);
  json["waterfall"] = waterfall_json(prediction.waterfall);
  json["network"] = to_json(prediction.network);
  json["cost_usd_per_step"] = prediction.cost ? Json(prediction.cost->count()) : Json(nullptr);
  put_price(question.cluster, json);
  put_totals(question, prediction, tokens, json);
  json["energy_j_per_step"] = prediction.energy.count();
  json["gpu_power_w"] =
      models::gpu_power(question.cluster, question.plan.gpus(), prediction.energy, prediction.step)
          .count();
  json["uncertainty"] = {{"p10", seconds(prediction.uncertainty.p10)},
                         {"p50", seconds(prediction.uncertainty.p50)},
                         {"p90", seconds(prediction.uncertainty.p90)}};
  json["evidence"] = to_json(prediction.evidence);
  json["open_questions"] = questions_json(question, prediction.step);
  json["plainer_choices"] = plainer_json(question, prediction);
  const bool sharded = models::shards_gradients(question.plan);
  json["sharded_error"] = sharded ? sharded_json() : Json(nullptr);
  json["limits"] = limits_json(question.cluster.gpu());
  json["assumptions"] = prediction.assumptions;
  json["ranks"] = prediction.ranks;
  json["ranks_simulated"] = prediction.ranks_simulated;
  return json;
}

}  // namespace orrery::scenarios
