// A whole run as text and as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

std::string days_words(double days) {
  if (days < 1) return fmt::format("{:.1f} hours", days * 24);
  if (days < 10) return fmt::format("{:.2f} days", days);
  return fmt::format("{:.1f} days", days);
}

std::string hours_words(double hours) {
  if (hours >= 1e6) return fmt::format("{:.1f}M GPU-hours", hours / 1e6);
  if (hours >= 1e4) return fmt::format("{:.0f}k GPU-hours", hours / 1e3);
  return fmt::format("{:.0f} GPU-hours", hours);
}

std::string tonnes_words(double tonnes) {
  return tonnes >= 1000 ? fmt::format("{:.0f}", tonnes) : fmt::format("{:.3g}", tonnes);
}

std::string count_words(double count) {
  return count >= 10 ? fmt::format("{:.0f}", count) : fmt::format("{:.1f}", count);
}

std::string tokens_words(double tokens) {
  return tokens >= 1e12 ? fmt::format("{:.4g}T", tokens / 1e12)
                        : fmt::format("{:.4g}B", tokens / 1e9);
}

std::string run_line(std::string_view label, std::string_view value, std::string_view rest) {
  return fmt::format("  {:<15}{:<18}{}\n", label, value, rest);
}

/// "70 to 101", in the unit of `days_words` for their middle.
std::string days_range(const RunRange& days) {
  const bool hours = days.p50 < 1;
  const double unit = hours ? 24 : 1;
  const int digits = days.p90 * unit < 30 ? 1 : 0;
  return fmt::format("{:.{}f} to {:.{}f}{}", unit * days.p10, digits, unit * days.p90, digits,
                     hours ? " hours" : "");
}

/// "93 %"; what is nearly all has another digit.
std::string percent_of(double share) {
  return share > 0.985 && share < 1 ? fmt::format("{:.2f}", 100 * share)
                                    : fmt::format("{:.0f}", 100 * share);
}

/// "70 to 101".
std::string from_to(const RunRange& range, const char* form) {
  return fmt::format("{} to {}", fmt::format(fmt::runtime(form), range.p10),
                     fmt::format(fmt::runtime(form), range.p90));
}

double share_of(const WholeRun& run, std::string_view head) {
  double sum = 0;
  for (const auto& [name, share] : run.ledger) sum += name.starts_with(head) ? share : 0;
  return sum;
}

std::string where_it_goes(const WholeRun& run) {
  const std::pair<const char*, const char*> parts[] = {
      {"useful", "useful"},
      {"restart", "restarts"},
      {"lost work", "lost"},
      {"checkpoints", "checkpoints"},
      {"waiting", "waiting"},
      {"replicas out", "replicas out"},
      {"input data", "waiting for data"},
      {"evaluation", "evaluation"},
      {"maintenance", "maintenance"},
      {"reconfig", "reconfiguring"},
      {"unused", "unused nodes"},
      {"unexplained", "unexplained"},
  };
  std::string text;
  for (const auto& [head, words] : parts) {
    const double share = share_of(run, head);
    if (std::abs(share) < 5e-4 && std::string_view{head} != "restart") continue;
    text += fmt::format("{}{} {:.1f}", text.empty() ? "" : " | ", words, 100 * share);
  }
  return text;
}

std::string widest(const WholeRun& run) {
  std::string names, numbers;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, run.sensitivity.size()); ++i) {
    names += (i == 0 ? "" : ", then ") + run.sensitivity[i].first;
    numbers += fmt::format("{}{:.2f}", i == 0 ? "" : ", ", run.sensitivity[i].second);
  }
  return fmt::format("{} (ln {})", names, numbers);
}

std::string deadline_lines(const WholeRunReport& report, bool colour) {
  std::string text;
  const auto verdict = [&](double probability) {
    const bool met = probability >= report.confidence;
    return toned(fmt::format("kept in {:.0f} of 100 cases, {:.0f} wanted", 100 * probability,
                             100 * report.confidence),
                 met ? Tone::good : Tone::bad, colour);
  };
  if (report.deadline_days) {
    text += run_line("Deadline", days_words(*report.deadline_days),
                     verdict(report.deadline_probability()));
  }
  if (report.budget) {
    text += run_line("Budget", format(*report.budget),
                     report.run.cost ? verdict(report.budget_probability()) : "no price is known");
  }
  return text;
}

/// "about 720 interruptions, one in 2.7 h".
std::string interruptions_words(const WholeRun& run) {
  if (run.interruptions.p50 < 0.5) {
    return fmt::format("{:.2g} interruptions to be expected", run.interruptions.mean);
  }
  const double hours = run.days.p50 * 24 / run.interruptions.p50;
  return fmt::format(
      "about {} interruptions, one in {}", count_words(run.interruptions.p50),
      hours < 48 ? fmt::format("{:.1f} h", hours) : fmt::format("{:.1f} days", hours / 24));
}

/// A row for each phase, if there are several.
std::string phases_table(const RunModel& model, bool colour) {
  if (model.phases.size() < 2) return {};
  TextTable table{{"phase", "tokens", "length", "sequences", "GPUs", "step", "MFU", "alone"}};
  for (std::size_t i = 0; i < model.phases.size(); ++i) {
    const PlannedPhase& each = model.phases[i];
    table.add({fmt::format("{}", i + 1), tokens_words(each.tokens), fmt::format("{}", each.seq_len),
               fmt::format("{}", each.global_batch), fmt::format("{}", each.gpus),
               fmt::format("{:.4g} s", each.step.count()), fmt::format("{:.1f} %", 100 * each.mfu),
               days_words(each.alone().count() / seconds_per_day)});
  }
  return table.text(colour) + "\n";
}

std::string fit_line(const RunModel& model, bool colour) {
  if (!model.fits) {
    return toned("  The plan does not fit in memory: orrery simulate says why\n\n", Tone::bad,
                 colour);
  }
  if (model.fit != models::Fit::doubtful) return {};
  return toned(fmt::format("  The plan may not fit in memory: {:.0f} % of measured peaks would fit "
                           "(orrery simulate)\n\n",
                           100 * model.fit_probability),
               Tone::bad, colour);
}

/// What steps wait for their input, and what checkpoints add to it.
std::string data_line(const RunModel& model) {
  if (!model.has_data) return {};
  const double waits = model.data_wait();
  std::string rest = waits > 0 ? "of the time of steps they wait for data" : "no step waits for it";
  if (model.reads_slowed > 1) {
    rest += fmt::format("; while a checkpoint is written, reads take {:.2f} times as long",
                        model.reads_slowed);
  }
  return run_line("Data", waits > 0 ? fmt::format("{:.1f} %", 100 * waits) : "hidden", rest);
}

Json range_json(const RunRange& range) {
  return {{"p10", range.p10}, {"p50", range.p50}, {"p90", range.p90}, {"mean", range.mean}};
}

Json shares_json(const std::vector<Share>& shares) {
  Json json = Json::object();
  for (const auto& [name, share] : shares) json[name] = share;
  return json;
}

Json pools_json(const WholeRun& run) {
  Json pools = Json::array();
  for (std::size_t i = 0; i < run.model.pools.size(); ++i) {
    const NodePool& pool = run.model.pools[i];
    pools.push_back({{"name", pool.name},
                     {"nodes", pool.nodes},
                     {"spot", pool.spot},
                     {"usd_per_gpu_hour", pool.price ? Json(pool.price->count()) : Json(nullptr)},
                     {"mean_gpu_hours", run.pool_hours.at(i).first},
                     {"mean_share_there", run.pool_hours.at(i).second}});
  }
  return pools;
}

Json phases_json(const RunModel& model) {
  Json phases = Json::array();
  for (const PlannedPhase& each : model.phases) {
    phases.push_back({{"tokens", each.tokens},
                      {"seq_len", each.seq_len},
                      {"global_batch", each.global_batch},
                      {"gpus", each.gpus},
                      {"steps", each.steps},
                      {"step_time_s", each.step.count()},
                      {"mfu", each.mfu},
                      {"days_alone", each.alone().count() / seconds_per_day}});
  }
  return phases;
}

}  // namespace

std::string in_one_line(const WholeRun& run) {
  std::string text =
      fmt::format("{} with failures and restarts, {} in 8 of 10 cases", days_words(run.days.p50),
                  from_to(run.days, run.days.p90 < 10 ? "{:.2f}" : "{:.0f}"));
  if (run.cost) text += fmt::format(", {}", format(Money{run.cost->p50}));
  return text;
}

Json to_json(const WholeRunReport& report) {
  const WholeRun& run = report.run;
  const RunModel& model = run.model;
  Json json{{"command", "train"},
            {"scenario", report.scenario},
            {"model", report.model_name},
            {"cluster", report.cluster},
            {"software", report.software},
            {"tokens", report.tokens},
            {"samples", run.samples},
            {"seed", run.seed},
            {"fits", model.fits},
            {"fit", models::name(model.fit)},
            {"fit_probability", model.fit_probability}};
  std::int64_t steps = 0;
  for (const PlannedPhase& each : model.phases) steps += each.steps;
  json["steps"] = steps;
  json["alone"] = {{"days", model.alone().count() / seconds_per_day},
                   {"gpu_hours", model.gpu_hours_alone()}};
  json["days"] = range_json(run.days);
  json["days"]["exact_mean"] = or_null(run.expected_days);
  json["days"]["standard_error"] = run.error_of_mean;
  json["gpu_hours"] = range_json(run.gpu_hours);
  json["cost_usd"] = run.cost ? range_json(*run.cost) : Json(nullptr);
  json["price"] = model.price ? Json{{"usd_per_gpu_hour", model.price->count()},
                                     {"gpus", model.paid_gpus},
                                     {"source", model.price_source}}
                              : Json(nullptr);
  if (!model.pools.empty()) json["pools"] = pools_json(run);
  if (model.sent_between_pools > 0) {
    json["between_pools"] = {{"gb", model.sent_between_pools},
                             {"cost_usd", model.between_pools.count()}};
  }
  json["energy_mwh"] = range_json(run.energy_mwh);
  json["co2_t"] = range_json(run.co2_t);
  json["ettr"] = range_json(run.ettr);
  json["goodput"] = range_json(run.goodput);
  json["interruptions"] = range_json(run.interruptions);
  json["ledger"] = shares_json(run.ledger);
  json["sensitivity"] = Json::array();
  for (const auto& [name, part] : run.sensitivity) {
    json["sensitivity"].push_back({{"input", name}, {"ln_p90_over_p10", part}});
  }
  if (model.has_data) {
    json["data"] = {{"wait_share", model.data_wait()},
                    {"reads_slowed_by_checkpoints", model.reads_slowed},
                    {"writes_slowed_by_reads", model.writes_slowed}};
  }
  const auto finite = [](Seconds time) {
    return std::isfinite(time.count()) ? Json(time.count()) : Json(nullptr);
  };
  json["checkpoint"] = {
      {"interval_s", finite(model.interval)}, {"optimum_s", finite(model.optimum)},
      {"stall_s", model.stall.count()},       {"write_s", model.write.count()},
      {"durable_every", model.durable_every}, {"bytes", model.bytes.count()}};
  json["spares"] = model.spares ? Json{{"nodes", model.spares->nodes}} : Json(nullptr);
  json["deadline"] = report.deadline_days ? Json{{"days", *report.deadline_days},
                                                 {"confidence", report.confidence},
                                                 {"probability", report.deadline_probability()}}
                                          : Json(nullptr);
  json["budget"] = report.budget ? Json{{"usd", report.budget->count()},
                                        {"confidence", report.confidence},
                                        {"probability", report.budget_probability()}}
                                 : Json(nullptr);
  json["meets"] = report.meets();
  json["phases"] = phases_json(model);
  json["compared"] = {{"runs", published_runs.runs},
                      {"ratio_p10", published_runs.p10},
                      {"ratio_p50", published_runs.p50},
                      {"ratio_p90", published_runs.p90}};
  json["assumptions"] = report.assumptions;
  return json;
}

std::string text_of(const WholeRunReport& report, int width, bool colour) {
  const WholeRun& run = report.run;
  const RunModel& model = run.model;
  const ReportOptions options{.tokens = {}, .published = {}, .width = width, .colour = colour};
  const PlannedPhase& first = model.phases.front();
  std::string text = toned(fmt::format("{} on {}, {} tokens", report.model_name, report.cluster,
                                       tokens_words(report.tokens)),
                           Tone::bold, colour) +
                     fmt::format("\n{} · {} GPUs · {} runs simulated\n\n", report.software,
                                 first.gpus, run.samples);
  text += fit_line(model, colour) + phases_table(model, colour);
  const double alone = model.alone().count() / seconds_per_day;
  text += run_line(
      "Alone", days_words(alone),
      fmt::format(
          "{}{}, never interrupted", hours_words(model.gpu_hours_alone()),
          model.phases.size() > 1 ? "" : fmt::format(" at {:.4g} s a step", first.step.count())));
  text += run_line("Whole run", days_words(run.days.p50),
                   fmt::format("{} in 8 of 10 cases{}", days_range(run.days),
                               report.all_in ? ", as published runs needed" : ""));
  text += run_line(
      "GPU-hours", hours_words(run.gpu_hours.p50),
      fmt::format("{} to {}", hours_words(run.gpu_hours.p10), hours_words(run.gpu_hours.p90)));
  if (run.cost) {
    text += run_line("Cost", format(Money{run.cost->p50}),
                     fmt::format("{} to {}, at {} per GPU", format(Money{run.cost->p10}),
                                 format(Money{run.cost->p90}), format(*model.price)));
    text += paragraph(toned(model.price_source, Tone::faint, colour), 17, options);
  } else {
    text += run_line("Cost", "no price known", "state /run/price, /run/own or a cluster's price");
  }
  for (std::size_t i = 0; i < model.pools.size(); ++i) {
    const NodePool& pool = model.pools[i];
    const auto& [hours, there] = run.pool_hours.at(i);
    text += run_line(i == 0 ? "Pools" : "", pool.name.substr(0, 17),
                     fmt::format("{} nodes{}, there {:.0f} % of the time, {}", pool.nodes,
                                 pool.spot ? " on spot" : "", 100 * there, hours_words(hours)));
  }
  if (model.sent_between_pools > 0) {
    text += run_line(
        "Between pools", model.between_pools.count() > 0 ? format(model.between_pools) : "no price",
        fmt::format("for {:.4g} TB that leave a pool{}", model.sent_between_pools / 1e3,
                    model.between_pools.count() <= 0 ? ": state /run/between/dollars_per_gb"
                    : run.cost                       ? ", in the cost"
                                                     : ""));
  }
  const char* energy = run.energy_mwh.p90 < 1000 ? "{:.4g}" : "{:.0f}";
  text += run_line("Energy",
                   fmt::format("{} MWh", fmt::format(fmt::runtime(energy), run.energy_mwh.p50)),
                   fmt::format("{} with PUE {:g}; {} t of CO2", from_to(run.energy_mwh, energy),
                               model.pue, tonnes_words(run.co2_t.p50)));
  text += run_line("Uptime", percent_of(run.ettr.p50) + " %",
                   fmt::format("{} to {}; {}", percent_of(run.ettr.p10), percent_of(run.ettr.p90),
                               interruptions_words(run)));
  text += run_line("Goodput", fmt::format("{:.1f} %", 100 * run.goodput.p50),
                   "model FLOPs of the whole run over the GPUs' peak");
  text += run_line("Where it goes", where_it_goes(run), "");
  if (std::isfinite(model.interval.count())) {
    const bool as_long_as_write = model.write.count() > 0 && model.interval == model.write;
    text +=
        run_line("Checkpoint", fmt::format("every {:.3g} min", model.interval.count() / 60),
                 fmt::format("{}{} in {:.3g} s of stall; the optimum is {:.3g} min",
                             as_long_as_write ? "no sooner than the last one is written; " : "",
                             format(model.bytes), model.stall.count(), model.optimum.count() / 60));
  }
  text += data_line(model);
  text += deadline_lines(report, colour);
  text += run_line("Uncertainty", widest(run), "");
  if (run.days_saved_by_fast_restarts > 0.01) {
    text += run_line("Restarts", "twice as fast",
                     fmt::format("would save {}", days_words(run.days_saved_by_fast_restarts)));
  }
  text +=
      run_line("Others",
               fmt::format("{} published runs needed {:g} to {:g} times the hours of such a plan "
                           "alone",
                           published_runs.runs, published_runs.p10, published_runs.p90),
               "");
  if (run.expected_days) {
    text += run_line("Closed form", fmt::format("mean {}", days_words(run.days.mean)),
                     fmt::format("by the closed form {}", days_words(*run.expected_days)));
  }
  return text + assumed_section(report.assumptions, options);
}

}  // namespace orrery::scenarios
