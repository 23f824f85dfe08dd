#include "scenarios/whole_run/run_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <charconv>
#include <cmath>

#include "hardware/reading.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/scenario/limits.hpp"
#include "scenarios/scenario/tokens.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

double RatePrior::at(double share) const {
  return boost::math::gamma_p_inv(shape, share) / exposure;
}

/// Counts are negative binomial: P(N >= n) = I_p(n, shape) with p = d / (exposure + d).
bool RatePrior::contradicts(double failures, double node_days) const {
  constexpr double rare = 1e-3;
  if (!(shape > 0) || !std::isfinite(exposure) || !(node_days > 0)) return false;
  const double p = node_days / (exposure + node_days);
  if (failures > 0 && boost::math::ibeta(failures, shape, p) < rare) return true;
  return boost::math::ibetac(failures + 1, shape, p) < rare;
}

RatePrior prior_of(double median, double spread) {
  const double variance = std::expm1(spread * spread);  // over the squared mean
  const double mean = median * std::exp(spread * spread / 2);
  return {1 / variance, 1 / variance / mean};
}

namespace {

Seconds seconds_of(const Node& node) {
  return Seconds{seconds(node.as<Time>())};
}

std::optional<Seconds> seconds_if(const Node& node, std::string_view key) {
  const auto member = node.find(key);
  return member ? std::optional{seconds_of(*member)} : std::nullopt;
}

RunTime run_time_or(const Node& node, std::string_view key, Seconds otherwise) {
  return run_time(seconds_if(node, key).value_or(otherwise));
}

double count_of_tokens(const Node& node) {
  const std::string text = node.is_string() ? node.as<std::string>() : node.json().dump();
  const auto tokens = parse_tokens(text);
  if (!tokens) node.fail_expected(tokens_form);
  return *tokens;
}

/// "14/30d".
std::pair<double, double> failures_and_days(const std::string& text) {
  const std::size_t slash = text.find('/');
  double failures = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), failures);
  const bool counted = error == std::errc{} && slash != std::string::npos &&
                       end == text.data() + slash && failures >= 0 && failures <= 1e9;
  const auto days = counted ? parse_days(std::string_view{text}.substr(slash + 1)) : std::nullopt;
  if (days) return {failures, *days};
  throw InputError{"--failures", fmt::format("expected failures of this cluster over a time, such "
                                             "as 14/30d, found '{}'",
                                             printable(text, 60))};
}

class RunReader {
 public:
  RunReader(RunInputs& run, double node_size, std::int64_t nodes)
      : run_{run}, node_size_{node_size}, nodes_{nodes} {}

  void read(const Node& node) {
    node.only({"phases", "failures", "restart", "checkpoint", "spares", "evaluation", "maintenance",
               "replicas", "spot", "pools", "between", "sizes", "storage", "jitter", "residual",
               "energy", "own", "price"});
    if (const auto phases = node.find("phases")) read_phases(*phases);
    if (const auto failures = node.find("failures")) read_failures(*failures);
    if (const auto restart = node.find("restart")) read_restart(*restart);
    if (const auto checkpoint = node.find("checkpoint")) read_checkpoint(*checkpoint);
    if (const auto spares = node.find("spares")) read_spares(*spares);
    if (const auto evaluation = node.find("evaluation")) read_evaluation(*evaluation);
    run_.maintenance = recurring(node, "maintenance");
    if (const auto replicas = node.find("replicas")) read_replicas(*replicas);
    if (const auto spot = node.find("spot")) run_.spot = spot_of(*spot, nodes_);
    if (const auto pools = node.find("pools")) read_pools(node, *pools);
    if (const auto between = node.find("between")) take_between(node, *between);
    if (const auto sizes = node.find("sizes")) read_sizes(*sizes);
    if (const auto storage = node.find("storage")) {
      storage->only({"read", "write"});
      if (const auto read = storage->find("read")) run_.store_read = read->as<Bandwidth>();
      if (const auto write = storage->find("write")) run_.store_write = write->as<Bandwidth>();
    }
    run_.jitter = number_or(node, "jitter", 0, 0, 1);
    if (const auto residual = node.find("residual")) {
      residual->only({"median", "spread"});
      run_.residual_median = number_or(*residual, "median", run_.residual_median, 0.5, 10);
      run_.residual_spread = number_or(*residual, "spread", run_.residual_spread, 0, 2);
    }
    if (const auto energy = node.find("energy")) {
      energy->only({"pue", "co2_kg_per_kwh"});
      run_.pue = pue_or(*energy, run_.pue);
      run_.co2_kg_per_kwh = number_or(*energy, "co2_kg_per_kwh", run_.co2_kg_per_kwh, 0, 5);
    }
    if (const auto own = node.find("own")) run_.own = read_owned(*own, run_.pue);
    say_unused(node);
    if (const auto price = node.find("price")) run_.price = hardware::positive<Price>(*price);
  }

  void observe(double failures, double node_days) {
    if (failures > 0 && std::isinf(run_.rate.exposure)) {
      throw InputError{"/run/failures/rate", "is 0, but failures were counted"};
    }
    const bool alone = run_.rate.contradicts(failures, node_days);
    run_.rate = run_.rate.observed(failures, node_days);
    run_.rate_source += fmt::format(
        "; {:g} failures counted in {:.4g} node-days{}: {:.3g} per 1000", failures, node_days,
        alone ? ", which such fleets would hardly see and which stand alone" : "",
        1000 * run_.rate.mean());
  }

  double node_days(double days) const { return days * static_cast<double>(nodes_) * node_size_; }

 private:
  /// Members that a run on spot instances, or of replicas that train on, does not simulate.
  void say_unused(const Node& node) {
    const auto say = [&](std::string_view way, std::initializer_list<const char*> members) {
      for (const char* each : members) {
        if (!node.has(each)) continue;
        run_.assumptions.push_back(fmt::format("/run/{}: not simulated with /run/{}", each, way));
      }
    };
    if (run_.spot) {
      say("spot", {"restart", "maintenance", "spares", "replicas"});
    } else if (run_.replicas) {
      say("replicas", {"restart", "checkpoint", "spares"});
    }
  }

  void read_phases(const Node& phases) {
    for (const Node& each : phases.elements()) {
      each.only({"tokens", "seq_len", "global_batch", "nodes", "plan"});
      RunPhase phase{.tokens = count_of_tokens(each["tokens"])};
      const auto take = [&](const char* key, std::optional<std::int64_t>& value) {
        if (const auto member = each.find(key)) value = member->integer(1, most_count);
      };
      take("seq_len", phase.seq_len);
      take("global_batch", phase.global_batch);
      take("nodes", phase.nodes);
      if (const auto plan = each.find("plan")) phase.plan = fields_of(*plan);
      run_.phases.push_back(std::move(phase));
    }
    if (run_.phases.empty()) phases.fail_expected("at least one phase");
  }

  /// A length and a batch are members of the phase itself.
  static std::vector<std::pair<std::string, Json>> fields_of(const Node& plan) {
    std::vector<std::string_view> known;
    for (const models::PlanField& each : models::plan_fields()) {
      if (each.key != "seq_len" && each.key != "global_batch") known.push_back(each.key);
    }
    plan.only(known);
    std::vector<std::pair<std::string, Json>> fields;
    for (const auto& [key, value] : plan.members()) fields.emplace_back(key, value.json());
    return fields;
  }

  void read_failures(const Node& node) {
    node.only({"rate", "spread", "observed", "trace", "shape", "soft"});
    if (node.has("rate") || node.has("spread")) {
      const double rate = number_or(node, "rate", 4.54, 0, 1e6);
      const double spread = number_or(node, "spread", 0.46, 0.001, 3);
      run_.rate = rate > 0 ? prior_of(rate / 1000, spread) : RatePrior{1, HUGE_VAL};
      run_.rate_source = fmt::format("/run/failures/rate: {:g} per 1000 node-days", rate);
    }
    if (const auto observed = node.find("observed")) {
      observed->only({"failures", "node_days", "days"});
      const double days = observed->has("days") ? node_days((*observed)["days"].as<double>())
                                                : (*observed)["node_days"].as<double>();
      if (!(days > 0)) observed->fail_expected("days or node_days above 0");
      (*observed)["failures"];  // required
      observe(number_or(*observed, "failures", 0, 0, 1e9), days);
    }
    if (const auto shape = node.find("shape")) {
      run_.intervals = weibull_table(number_or(node, "shape", 1, 0.2, 20));
    }
    if (const auto trace = node.find("trace")) {
      run_.failure_trace = trace->as<std::string>();
      run_.intervals = observed_table(intervals_in(*run_.failure_trace));
    }
    run_.soft = number_or(node, "soft", run_.soft, 0, 1);
  }

  static std::vector<double> intervals_in(const std::string& path) {
    std::vector<double> intervals;
    std::optional<RunTime> before;
    std::vector<NodeEvent> events = read_node_events(Table::load(path));
    std::ranges::stable_sort(events, {}, &NodeEvent::at);
    for (const NodeEvent& each : events) {
      if (each.change != NodeChange::down) continue;
      if (before) intervals.push_back(in_seconds(each.at - *before).count());
      before = each.at;
    }
    if (intervals.size() < 2 || std::ranges::max(intervals) <= 0) {
      throw InputError{path, "expected at least three failures, not all at one time"};
    }
    return intervals;
  }

  void read_restart(const Node& node) {
    node.only({"detect", "drain", "reschedule", "start", "communicators", "load", "warm_up",
               "spread", "succeeds", "retries", "human", "health_checks"});
    if (const auto checks = node.find("health_checks")) read_health_checks(*checks);
    for (RestartStage& each : run_.stages) {
      if (const auto given = node.find(each.name)) read_stage(*given, each);
    }
    run_.restart_spread = number_or(node, "spread", run_.restart_spread, 0, 3);
    run_.succeeds = number_or(node, "succeeds", run_.succeeds, 0.01, 1);
    run_.retries = static_cast<int>(node.integer_or("retries", 1, 1000, run_.retries));
    if (const auto human = node.find("human")) {
      human->only({"share", "time"});
      if (human->has("share")) run_.human_share = number_or(*human, "share", 0, 0, 1);
      run_.human = seconds_if(*human, "time").value_or(run_.human);
    }
  }

  /// What sees a failure first: a check of its kind, half of an interval later on average, or a
  /// hang that NCCL's watchdog ends.
  ///   detect = covered (every / 2 + check) + (1 - covered) watchdog
  /// Source  of Llama 3's 419 interruptions (arXiv 2407.21783, table 5): GPUs, their memory and
  ///         system processors 256; thermal interfaces and power supplies 9; network and NICs 42
  void read_health_checks(const Node& checks) {
    double covered = 0;
    Seconds every{60}, check{10}, watchdog{600};
    if (checks.is_object()) {
      checks.only({"every", "check", "watchdog", "ecc", "temperature", "links"});
      every = seconds_if(checks, "every").value_or(every);
      check = seconds_if(checks, "check").value_or(check);
      watchdog = seconds_if(checks, "watchdog").value_or(watchdog);
      constexpr double all = 419;
      if (checks.value_or("ecc", true)) covered += 256 / all;
      if (checks.value_or("temperature", true)) covered += 9 / all;
      if (checks.value_or("links", true)) covered += 42 / all;
    } else if (checks.as<bool>()) {
      return;
    }
    const Seconds mean = (every * 0.5 + check) * covered + watchdog * (1 - covered);
    stage("detect") = {"detect", mean, covered > 0 ? 1.0 : 0.0};
    run_.assumptions.push_back(
        covered > 0
            ? fmt::format("/run/restart/health_checks: {:.0f} % of failures are of kinds that are "
                          "checked every {:.3g} s, the others hang for {:.3g} s: {:.3g} s to "
                          "detect one (kinds as Llama 3's)",
                          100 * covered, every.count(), watchdog.count(), mean.count())
            : fmt::format("/run/restart/detect: {:.3g} min without health checks, the default "
                          "timeout of PyTorch's watchdog for NCCL",
                          watchdog.count() / 60));
  }

  RestartStage& stage(std::string_view name) {
    for (RestartStage& each : run_.stages) {
      if (each.name == name) return each;
    }
    throw ContractError{"a stage of a restart is known by its name"};
  }

  static void read_stage(const Node& node, RestartStage& stage) {
    if (node.is_object()) {
      node.only({"mean", "shape"});
      stage.mean = seconds_of(node["mean"]);
      stage.shape = number_or(node, "shape", stage.shape, 0, 1000);
    } else {
      stage.mean = seconds_of(node);
    }
  }

  void read_checkpoint(const Node& node) {
    node.only({"every", "every_steps", "bytes", "stall", "write", "load", "asynchronous",
               "durable_every"});
    CheckpointInputs& asked = run_.checkpoint;
    asked.every = seconds_if(node, "every");
    asked.every_steps = steps_if(node, "every_steps");
    if (asked.every && asked.every_steps) node["every_steps"].fail("stated twice: `every` says it");
    asked.stall = seconds_if(node, "stall");
    asked.write = seconds_if(node, "write");
    asked.load = seconds_if(node, "load");
    if (const auto bytes = node.find("bytes")) asked.bytes = bytes->as<Bytes>();
    asked.asynchronous = node.value_or("asynchronous", true);
    asked.durable_every = node.integer_or("durable_every", 1, 1'000'000, 1);
    if (asked.every && asked.every->count() <= 0) node["every"].fail_expected("a time above 0");
  }

  static std::optional<std::int64_t> steps_if(const Node& node, std::string_view key) {
    const auto given = node.find(key);
    return given ? std::optional{given->integer(1, std::int64_t{1} << 40)} : std::nullopt;
  }

  void read_evaluation(const Node& node) {
    node.only({"every", "time", "every_steps", "iterations"});
    Evaluations read{.every = seconds_if(node, "every"),
                     .time = seconds_if(node, "time"),
                     .every_steps = steps_if(node, "every_steps"),
                     .iterations = steps_if(node, "iterations")};
    if (read.every.has_value() == read.every_steps.has_value()) {
      node.fail("needs one of every, a time, and every_steps");
    }
    if (read.time.has_value() == read.iterations.has_value()) {
      node.fail("needs one of time and iterations, batches that run forward");
    }
    const bool shorter = read.every && read.time && *read.every < *read.time;
    if (read.every && (read.every->count() < 1 || shorter)) {
      node["every"].fail_expected("a second or more, and not less than `time`");
    }
    run_.evaluation = read;
  }

  void read_spares(const Node& node) {
    node.only({"nodes", "repair", "when_empty"});
    Spares spares{.nodes = node["nodes"].integer(0, most_count),
                  .repair_mean = Seconds{5.54 * seconds_per_day},
                  .repair_median = Seconds{0.85 * seconds_per_day}};
    if (const auto repair = node.find("repair")) {
      repair->only({"mean", "median"});
      spares.repair_mean = seconds_of((*repair)["mean"]);
      spares.repair_median = seconds_if(*repair, "median").value_or(spares.repair_mean);
      if (spares.repair_median.count() <= 0 || spares.repair_mean < spares.repair_median) {
        repair->fail_expected("a median above 0 and a mean not below it");
      }
    }
    // Whether it waits or shrinks; how much speed a lost node costs depends on the plan.
    const bool shrinks = node.has("when_empty") && node["when_empty"].one_of({"wait", "shrink"});
    spares.share = shrinks ? -1 : 1;
    run_.spares = spares;
  }

  static std::optional<Recurring> recurring(const Node& run, std::string_view key) {
    const auto node = run.find(key);
    if (!node) return std::nullopt;
    node->only({"every", "time"});
    const Recurring made{seconds_of((*node)["every"]), seconds_of((*node)["time"])};
    if (made.every.count() < 1 || made.every < made.time) {
      (*node)["every"].fail_expected("a second or more, and not less than `time`");
    }
    return made;
  }

  void read_replicas(const Node& node) {
    node.only({"count", "stall", "out"});
    run_.replicas = Replicas{.count = node["count"].integer(1, 1'000'000),
                             .stall = seconds_of(node["stall"]),
                             .out = seconds_of(node["out"])};
  }

  static SpotInputs spot_of(const Node& node, std::int64_t nodes) {
    node.only({"trace", "rate", "drop", "refill", "notice"});
    SpotInputs spot;
    if (const auto trace = node.find("trace")) {
      const auto path = trace->as<std::string>();
      spot.trace = read_node_events(Table::load(path));
      if (spot.trace->empty()) throw InputError{path, "has no event of a node"};
    } else {
      node["rate"];
    }
    spot.market = {.nodes = nodes,
                   .per_node_hour = number_or(node, "rate", 0, 0, 60),
                   .drop = number_or(node, "drop", 1, 1, 1e6),
                   .refill = seconds_if(node, "refill").value_or(Seconds{600})};
    spot.notice = run_time_or(node, "notice", Seconds{});
    return spot;
  }

  void read_pools(const Node& run, const Node& pools) {
    for (const char* other : {"spot", "price", "own"}) {
      if (run.has(other)) run[other].fail("not with /run/pools, each of which states its own");
    }
    std::int64_t nodes = 0;
    bool any_spot = false;
    for (const Node& each : pools.elements()) {
      each.only({"name", "nodes", "price", "spot"});
      NodePool pool{.name = each["name"].as<std::string>(),
                    .nodes = each["nodes"].integer(1, most_count)};
      if (const auto price = each.find("price")) pool.price = hardware::positive<Price>(*price);
      if (const auto spot = each.find("spot")) {
        pool.spot = any_spot = true;
        const SpotInputs read = spot_of(*spot, pool.nodes);
        pool.trace = read.trace;
        pool.market = read.market;
        if (!run_.spot) run_.spot = SpotInputs{};
        run_.spot->notice = std::max(run_.spot->notice, read.notice);
      }
      nodes += pool.nodes;
      run_.pools.push_back(std::move(pool));
    }
    const auto priced = std::ranges::count_if(
        run_.pools, [](const NodePool& each) { return each.price.has_value(); });
    if (priced > 0 && priced < std::ssize(run_.pools)) {
      pools.fail("some pools state a price and others none: state it for each, or for none");
    }
    if (nodes != nodes_) {
      pools.fail(fmt::format("have {} nodes in all, the plan runs on {}", nodes, nodes_));
    }
  }

  void take_between(const Node& run, const Node& node) {
    if (!run.has("pools")) node.fail("is the network between /run/pools, and none are stated");
    run_.between = read_between(node);
  }

  void read_sizes(const Node& node) {
    node.only({"from", "to", "unit", "reconfigure", "hold"});
    const auto take = [&](const char* key, std::optional<std::int64_t>& value) {
      if (const auto member = node.find(key)) value = member->integer(1, most_count);
    };
    take("from", run_.sizes.from);
    take("to", run_.sizes.to);
    take("unit", run_.sizes.unit);
    run_.sizes.reconfigure = run_time_or(node, "reconfigure", Seconds{300});
    run_.sizes.hold = run_time_or(node, "hold", Seconds{600});
  }

  RunInputs& run_;
  double node_size_;  // in nodes of eight GPUs
  std::int64_t nodes_;
};

/// `communicators` and `load` depend on the plan: filled in with it.
std::vector<RestartStage> usual_stages() {
  constexpr Seconds of_plan{-1};
  return {{"detect", Seconds{120}, 1},    {"drain", Seconds{0}, 0},
          {"reschedule", Seconds{60}, 4}, {"start", Seconds{60}, 4},
          {"communicators", of_plan, 0},  {"load", of_plan, 0},
          {"warm_up", Seconds{150}, 4}};
}

}  // namespace

BetweenPools read_between(const Node& node) {
  node.only({"bandwidth", "latency", "gradient_bytes", "dollars_per_gb", "every"});
  BetweenPools between{.bandwidth = node["bandwidth"].as<Bandwidth>(),
                       .latency = seconds_if(node, "latency").value_or(Seconds{})};
  if (!(between.bandwidth.count() > 0)) node["bandwidth"].fail_expected("a rate above 0");
  between.gradient_bytes = number_or(node, "gradient_bytes", between.gradient_bytes, 0.1, 16);
  between.dollars_per_gb = number_or(node, "dollars_per_gb", 0, 0, 100);
  between.every = node.integer_or("every", 1, 1'000'000, 1);
  return between;
}

RunInputs usual_run() {
  RunInputs run;
  run.stages = usual_stages();
  run.sizes.reconfigure = run_time(Seconds{300});
  run.sizes.hold = run_time(Seconds{600});
  run.rate_source =
      "/run/failures/rate: 4.54 per 1000 node-days of 8 GPUs assumed, spread ln 0.46 (seven fleets "
      "of 384 to 98,304 GPUs)";
  return run;
}

RunInputs read_run(const Scenario& scenario, std::int64_t node_gpus, std::int64_t nodes,
                   const std::optional<std::string>& observed) {
  RunInputs run = usual_run();
  const double node_size = static_cast<double>(node_gpus) / usual_node_gpus;
  RunReader reader{run, node_size, nodes};
  const Node root{scenario.json(), scenario.file(), ""};
  if (const auto node = root.find("run")) reader.read(*node);
  if (observed) {
    const auto [failures, days] = failures_and_days(*observed);
    reader.observe(failures, reader.node_days(days));
  }
  return run;
}

}  // namespace orrery::scenarios
