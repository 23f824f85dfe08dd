// The numbers of a whole run from a scenario: steps of each phase, checkpoints and restarts of its
// plan, power and price of its cluster.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/gpu/gpu_power.hpp"
#include "hardware/prices/rental.hpp"
#include "models/model/counts.hpp"
#include "models/plan/derived.hpp"
#include "models/prediction/power.hpp"
#include "scenarios/scenario/limits.hpp"
#include "scenarios/scenario/price_words.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Shares of a store's rate that jobs reached.
/// Source  504 B200 (arXiv 2605.09370): loads at 21.5 % of 700 GB/s, saves at 16.0 % of 250 GB/s
constexpr double share_read = 0.2, share_written = 0.16;
/// A GPU's copy to its host. Source  measured PCIe Gen5 x16: 54.8 GB/s on H100, 55.4 on H200
constexpr Bandwidth host_copy{55e9};
/// What an asynchronous save stalls besides the copy.
/// Source  ByteCheckpoint (arXiv 2407.20143, table 8): 0.34 s on 1,488 GPUs, 0.59 s on 8,960
constexpr Seconds save_barrier{0.5};
/// Start of communicators: 17 s at 16,384 GPUs and 200 s at 98,304 (FT-HSDP).
constexpr double communicator_seconds = 17, communicator_gpus = 16'384, communicator_power = 1.38;
/// A store's rates per node: the better of three guidelines, 32 nodes and more.
/// Source  NVIDIA DGX SuperPOD H100 reference architecture, table 6: 40 and 20 GB/s for 32 nodes
constexpr Bandwidth store_read_per_node{1.25e9}, store_write_per_node{0.625e9};
constexpr double bytes_per_weight = 2, bytes_per_state = 12;
/// Operators of this many GPUs and more have people and automation around the clock.
constexpr std::int64_t large_operator = 4096;

struct PredictedPhase {
  models::Question question;
  models::Prediction prediction;
  PlannedPhase planned;
};

PredictedPhase predicted(models::Question question, double tokens) {
  PredictedPhase made{.question = std::move(question), .prediction = {}, .planned = {}};
  made.prediction = models::predict(made.question);
  const models::Prediction& step = made.prediction;
  const double seconds_alone = tokens / step.tokens_per_second;
  PlannedPhase& planned = made.planned;
  planned.tokens = tokens;
  planned.seq_len = made.question.plan.batch.seq_len;
  planned.global_batch = made.question.plan.batch.global;
  planned.gpus = made.question.plan.gpus();
  planned.nodes =
      (planned.gpus + made.question.cluster.node.gpus - 1) / made.question.cluster.node.gpus;
  planned.step = Seconds{seconds(step.step)};
  planned.steps =
      std::max<std::int64_t>(1, std::llround(std::ceil(seconds_alone / planned.step.count())));
  planned.low = std::log(seconds(step.step) / seconds(step.uncertainty.p10));
  planned.high = std::log(seconds(step.uncertainty.p90) / seconds(step.step));
  planned.mfu = step.mfu;
  planned.data_wait = ratio(step.data_wait(), step.step);
  return made;
}

Scenario of_phase(const Scenario& scenario, const RunPhase& phase) {
  std::vector<std::pair<std::string, Json>> changes;
  for (const auto& [key, value] : phase.plan) changes.emplace_back("/plan/" + key, value);
  if (phase.seq_len) changes.emplace_back("/plan/seq_len", *phase.seq_len);
  if (phase.global_batch) changes.emplace_back("/plan/global_batch", *phase.global_batch);
  if (phase.nodes) changes.emplace_back("/cluster/nodes", *phase.nodes);
  return changes.empty() ? scenario : scenario.replace(changes);
}

/// Weights once, and master weights and moments as the Program has them.
Bytes checkpoint_bytes(const PredictedPhase& phase) {
  const auto parameters = static_cast<double>(phase.question.model.parameters);
  double states = bytes_per_state * parameters;
  if (phase.question.plan.sharding.zero != models::Zero::none) {
    states = 0;
    const double ranks = static_cast<double>(phase.planned.gpus) /
                         static_cast<double>(phase.prediction.memory.size());
    for (const models::StageMemory& each : phase.prediction.memory) {
      const auto kind = static_cast<std::size_t>(models::BufferKind::optimizer);
      states += ranks * static_cast<double>(each.program.at(kind).count());
    }
  }
  return nearest_count<Bytes>(bytes_per_weight * parameters + states);
}

/// Fills in what depends on the plan and the cluster.
class ModelMaker {
 public:
  ModelMaker(const PredictedPhase& phase, RunInputs& run, RunModel& model)
      : phase_{phase}, run_{run}, model_{model} {}

  void make() {
    evaluations();
    checkpoints();
    share_store();
    recovery();
    interval();
    money_and_power();
    model_.rate = run_.rate;
    assume(run_.rate_source);
    assume(
        fmt::format("/run/residual: what is not modelled takes a factor {:g} of the time, ln {:g}",
                    run_.residual_median, run_.residual_spread));
    if (!run_.evaluation) assume("/run/evaluation: none");
    if (!run_.maintenance) assume("/run/maintenance: none");
    if (!run_.spares) assume("/run/spares: the provider replaces lost nodes within `reschedule`");
  }

 private:
  void assume(std::string words) { run_.assumptions.push_back(std::move(words)); }

  double nodes() const { return static_cast<double>(phase_.planned.nodes); }

  const std::optional<models::DataRequest>& data() const { return phase_.question.data; }

  /// Steps that read and a checkpoint that is written share the store max-min.
  ///   u_r = bytes read in a step / (step x read rate),  u_w = bytes / (write x write rate)
  ///   together at most 1; else whoever needs less than half gets it, the other one the rest
  void share_store() {
    if (!data()) return;
    const models::DataAnswer& lane = *phase_.prediction.data;
    const models::DataStore& read = data()->store;
    const double readers = static_cast<double>(std::max(read.shared_by, lane.demand.nodes)) /
                           static_cast<double>(lane.demand.nodes);
    const double reads = std::min(1.0, readers * static_cast<double>(lane.read.count()) /
                                           (seconds(lane.step) * read.bandwidth.count()));
    model_.has_data = true;
    if (model_.write.count() <= 0) return;  // nothing trains while it is written
    const double writes = std::min(1.0, static_cast<double>(model_.bytes.count()) /
                                            (model_.write.count() * write_rate_.count()));
    if (reads + writes <= 1) return;
    const double read_share = reads <= 0.5 ? reads : std::max(0.5, 1 - writes);
    const double write_share = 1 - read_share;
    model_.reads_slowed = reads / read_share;
    model_.writes_slowed = writes / write_share;
    model_.write = model_.write * model_.writes_slowed;
    assume(
        fmt::format("/data/store: reads take {:.0f} % of it and a checkpoint's write {:.0f} %; "
                    "while one is written, reads take {:.2f} times and the write {:.2f} times as "
                    "long",
                    100 * reads, 100 * writes, model_.reads_slowed, model_.writes_slowed));
  }

  Bandwidth store(const std::optional<Bandwidth>& stated, const std::optional<Bandwidth>& of_node,
                  Bandwidth usual, const char* key) {
    if (stated) return *stated;
    if (of_node) return *of_node * nodes();
    const Bandwidth all = usual * nodes();
    assume(
        fmt::format("/run/storage/{}: {} assumed, shared by all ranks ({} for each node, DGX "
                    "SuperPOD's guideline)",
                    key, format(all), format(usual)));
    return all;
  }

  void checkpoints() {
    const CheckpointInputs& asked = run_.checkpoint;
    model_.bytes = asked.bytes.value_or(checkpoint_bytes(phase_));
    const auto bytes = static_cast<double>(model_.bytes.count());
    write_rate_ = store(run_.store_write, phase_.question.cluster.storage.write,
                        store_write_per_node, "write");
    const Seconds written{bytes / (share_written * write_rate_.count())};
    const Seconds copied{bytes / static_cast<double>(phase_.planned.gpus) / host_copy.count()};
    const Seconds save = asked.write.value_or(written);
    if (!asked.write && !(asked.stall && !asked.asynchronous)) {
      assume(
          fmt::format("/run/checkpoint/write: {:.4g} s assumed, {:g} % of the store's rate of {} "
                      "(504 B200, arXiv 2605.09370)",
                      written.count(), 100 * share_written, format(write_rate_)));
    }
    model_.stall = asked.stall.value_or(asked.asynchronous ? copied + save_barrier : save);
    model_.write = asked.asynchronous ? save : Seconds{};
    model_.durable_every = asked.durable_every;
    if (!asked.stall) {
      assume(fmt::format("/run/checkpoint/stall: {:.3g} s assumed, {}", model_.stall.count(),
                         asked.asynchronous
                             ? "a copy to the host and a barrier; written while training goes on"
                             : "the whole write"));
    }
    // Two levels: the copies stay in the nodes, every n-th is also written.
    if (model_.durable_every > 1 && !asked.asynchronous) {
      model_.durable_stall = save;
      model_.stall = asked.stall.value_or(copied + save_barrier);
    }
  }

  void recovery() {
    const double gpus = static_cast<double>(phase_.planned.gpus);
    std::optional<Bandwidth> stated = run_.store_read;
    if (!stated && data()) stated = data()->store.bandwidth;
    const Bandwidth read =
        store(stated, phase_.question.cluster.storage.read, store_read_per_node, "read");
    for (RestartStage& each : run_.stages) {
      if (each.mean.count() >= 0) continue;
      if (each.name == "load" && !run_.checkpoint.load) {
        assume(
            fmt::format("/run/restart/load: a checkpoint is read at {:g} % of the store's rate "
                        "of {} (504 B200, arXiv 2605.09370)",
                        100 * share_read, format(read)));
      }
      each.mean =
          each.name == "load"
              ? run_.checkpoint.load.value_or(Seconds{static_cast<double>(model_.bytes.count()) /
                                                      (share_read * read.count())})
              : Seconds{communicator_seconds *
                        std::pow(gpus / communicator_gpus, communicator_power)};
    }
    const bool large = phase_.planned.gpus >= large_operator;
    if (!run_.human_share) {
      run_.human_share = large ? 0.01 : 0.1;
      assume(fmt::format("/run/restart/human: {:g} % of failures wait {:.3g} h for a person",
                         100 * *run_.human_share, run_.human.count() / 3600));
    }
    model_.recovery = {.stages = run_.stages,
                       .hard_stages = {},
                       .soft = run_.soft,
                       .succeeds = run_.succeeds,
                       .retries = run_.retries,
                       .human_share = *run_.human_share,
                       .human = {"a person", run_.human, 0}};
    double seconds_in_all = 0;
    std::string parts;
    for (const RestartStage& each : run_.stages) {
      seconds_in_all += each.mean.count();
      if (each.mean.count() <= 0) continue;
      parts +=
          fmt::format("{}{} {:.3g} s", parts.empty() ? "" : ", ", each.name, each.mean.count());
    }
    assume(fmt::format("/run/restart: {:.3g} min ({}); {:g} % of attempts succeed",
                       seconds_in_all / 60, parts, 100 * run_.succeeds));
    model_.restart_spread = run_.restart_spread;
  }

  /// Evaluations that are counted in steps and batches take as long as steps of the longest phase:
  /// a batch the share of a step's FLOPs that forward has.
  void evaluations() {
    if (!run_.evaluation) return;
    const Evaluations& asked = *run_.evaluation;
    const models::Prediction& step = phase_.prediction;
    const models::Plan& plan = phase_.question.plan;
    Recurring made{asked.every.value_or(phase_.planned.step *
                                        static_cast<double>(asked.every_steps.value_or(0))),
                   asked.time.value_or(Seconds{})};
    if (asked.iterations) {
      const double tokens = static_cast<double>(plan.batch.global * plan.batch.seq_len);
      const double forward = tokens * models::forward_flops_per_token(
                                          phase_.question.model, models::attended_length(plan));
      const double all = step.model_flops + step.recomputed_flops;
      const double share = all > 0 ? std::min(1.0, forward / all) : 1;
      made.time = phase_.planned.step * (share * static_cast<double>(*asked.iterations));
      assume(
          fmt::format("/run/evaluation/iterations: {} batches forward, each {:.0f} % of a step, "
                      "its share of the FLOPs: {:.3g} s",
                      *asked.iterations, 100 * share, made.time.count()));
    }
    model_.evaluation = made;
  }

  /// Chosen from the prior's median: nobody knows the rate beforehand.
  void interval() {
    const double per_day = run_.rate.at(0.5) * nodes() * model_.node_size + taken_per_day();
    const Seconds stall =
        model_.stall + model_.durable_stall * (1 / static_cast<double>(model_.durable_every));
    const Seconds between{per_day > 0 ? seconds_per_day / per_day : HUGE_VAL};
    model_.optimum = std::isfinite(between.count()) ? best_interval(between, stall) : between;
    if (run_.checkpoint.every_steps) {
      run_.checkpoint.every =
          phase_.planned.step * static_cast<double>(*run_.checkpoint.every_steps);
    }
    // A whole number of steps; not shorter than a write that goes on behind them.
    const Seconds wanted = run_.checkpoint.every.value_or(std::max(model_.optimum, model_.write));
    const double steps = std::max(1.0, std::round(wanted.count() / phase_.planned.step.count()));
    model_.interval = std::isfinite(steps) ? phase_.planned.step * steps : wanted;
    if (model_.write <= model_.interval) return;
    model_.interval = model_.write;
    if (run_.checkpoint.every) {
      assume(fmt::format(
          "/run/checkpoint/every: {:.4g} s instead of {:.4g}, which a write of "
          "{:.4g} s would not keep up with",
          model_.interval.count(), run_.checkpoint.every->count(), model_.write.count()));
    }
  }

  /// Times a day that spot nodes are taken with no notice to save in.
  double taken_per_day() const {
    if (!run_.spot || in_seconds(run_.spot->notice) >= model_.stall) return 0;
    if (!run_.spot->trace) {
      const SpotMarket& market = run_.spot->market;
      return market.per_node_hour * 24 * static_cast<double>(market.nodes) / market.drop;
    }
    std::vector<RunTime> times;
    RunTime last{};
    for (const NodeEvent& each : *run_.spot->trace) {
      last = std::max(last, each.at);
      if (each.change == NodeChange::down) times.push_back(each.at);
    }
    std::ranges::sort(times);
    times.erase(std::ranges::unique(times).begin(), times.end());
    return static_cast<double>(times.size()) * seconds_per_day /
           std::max(in_seconds(last).count(), 1.0);
  }

  void money_and_power() {
    const hardware::Cluster& cluster = phase_.question.cluster;
    model_.paid_gpus = phase_.planned.paid_gpus;
    if (!run_.pools.empty() && run_.pools.front().price) {
      price_of_pools();
    } else if (run_.price) {
      model_.price = run_.price;
      model_.price_source = "/run/price";
    } else if (run_.own) {
      model_.price = hourly_price(*run_.own);
      model_.price_source = "owned (/run/own)";
    } else if (const auto price = hardware::price_of(cluster)) {
      model_.price = price->per_gpu_hour;
      model_.price_source = source_words(*price);
    }
    model_.running = Power{phase_.prediction.energy.count() / phase_.planned.step.count()};
    const Power each =
        hardware::power_draw(cluster.gpu()).waiting + hardware::host_share(cluster.node);
    model_.pausing = each * static_cast<double>(phase_.planned.gpus);
    model_.pue = run_.pue;
    model_.co2_kg_per_kwh = run_.co2_kg_per_kwh;
    assume(
        fmt::format("/run/energy: PUE {:g}, {:g} kg CO2 for each kWh (model cards of Llama 2 "
                    "and 3.1: 0.41 to 0.42)",
                    run_.pue, run_.co2_kg_per_kwh));
  }

  /// The mean over nodes; hours of each pool are paid at its own.
  void price_of_pools() {
    double dollars = 0, nodes_in_all = 0;
    std::string words;
    for (const NodePool& each : run_.pools) {
      const auto count = static_cast<double>(each.nodes);
      dollars += count * each.price->count();
      nodes_in_all += count;
      words += fmt::format("{}{} {} nodes at {}{}", words.empty() ? "" : ", ", each.name,
                           each.nodes, format(*each.price), each.spot ? " (spot)" : "");
    }
    model_.price = Price{dollars / nodes_in_all};
    model_.price_source = "/run/pools: " + words;
  }

  const PredictedPhase& phase_;
  RunInputs& run_;
  RunModel& model_;
  Bandwidth write_rate_{};
};

/// The mean step where checkpoints that are written slow its reads for a share f of the time.
///   step / (1 - f (1 - step / slow))
void slow_reads(const PredictedPhase& phase, const RunModel& model, PlannedPhase& planned) {
  if (model.reads_slowed <= 1) return;
  const models::DataAnswer& lane = *phase.prediction.data;
  const Time slow = models::data_lane(*phase.question.data, lane.demand, lane.compute,
                                      {.reads = model.reads_slowed})
                        .step;
  const double written = std::min(1.0, model.write.count() / model.interval.count());
  const double factor = 1 / (1 - written * (1 - ratio(lane.step, slow)));
  planned.step = planned.step * factor;
  planned.mfu /= factor;
  planned.data_wait = 1 - (1 - planned.data_wait) / factor;
}

/// Ranks that wait for the slowest of n, each with a normal deviation.
///   1 + s sqrt(2 ln n)
double straggling(double deviation, double ranks) {
  return ranks > 1 ? 1 + deviation * std::sqrt(2 * std::log(ranks)) : 1;
}

/// Nodes that hold one data-parallel replica.
std::int64_t replica_nodes(const PredictedPhase& phase) {
  const std::int64_t gpus = phase.planned.gpus / phase.question.plan.data;
  const std::int64_t of_node = phase.question.cluster.node.gpus;
  return std::max<std::int64_t>(1, (gpus + of_node - 1) / of_node);
}

Seconds replacement_time(const RunInputs& run) {
  const auto found = std::ranges::find(run.stages, "reschedule", &RestartStage::name);
  return found->mean;
}

/// Gradients cross the network between pools after each step's backward.
void exchange_between(const std::vector<PredictedPhase>& phases, RunInputs& run, RunModel& model) {
  if (!run.between) return;
  const BetweenPools& link = *run.between;
  const auto places = static_cast<double>(run.pools.size());
  const double once = 2 * (places - 1) / places;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const models::Question& question = phases[i].question;
    if (question.plan.data < std::ssize(run.pools)) {
      throw InputError{"/run/between",
                       fmt::format("needs a data-parallel replica in each of {} pools; /plan/data "
                                   "is {}",
                                   run.pools.size(), question.plan.data)};
    }
    const double exchanged =
        once * link.gradient_bytes * static_cast<double>(question.model.parameters);
    const Seconds exchange =
        Seconds{exchanged / link.bandwidth.count()} + link.latency * (2 * (places - 1));
    const double share = 1 / static_cast<double>(link.every);
    const double bytes = exchanged * share;  // of a step, as all below
    const Seconds time = exchange * share;
    PlannedPhase& planned = model.phases[i];
    const double factor = ratio(planned.step + time, planned.step);
    planned.step = planned.step + time;
    planned.mfu /= factor;
    planned.data_wait /= factor;
    const double sent = bytes * places / 1e9 * static_cast<double>(planned.steps);
    model.sent_between_pools += sent;
    model.between_pools += Money{link.dollars_per_gb * sent};
    run.assumptions.push_back(
        link.every == 1
            ? fmt::format("/run/between: {:.4g} GB of gradients leave each pool in a step, {:.3g} "
                          "s after backward",
                          exchanged / 1e9, exchange.count())
            : fmt::format("/run/between: {:.4g} GB leave each pool after every {} steps that it "
                          "took by itself, in {:.3g} s; as many tokens as with an exchange in "
                          "every step assumed",
                          exchanged / 1e9, link.every, exchange.count()));
  }
}

void take_pool(const PredictedPhase& phase, const RunInputs& run, RunModel& model) {
  const std::int64_t unit = replica_nodes(phase);
  model.spares = run.spares;
  if (model.spares && model.spares->share < 0) {
    model.spares->share = static_cast<double>(unit) / static_cast<double>(phase.planned.nodes);
  }
  model.replicas = run.replicas;
  model.spot = run.spot;
  model.pools = run.pools;
  for (NodePool& each : model.pools) {
    if (each.spot) continue;  // a fixed pool's hardware fails, one node at a time
    each.market = {.nodes = each.nodes,
                   .per_node_hour = run.rate.at(0.5) * model.node_size / 24,
                   .drop = 1,
                   .refill = replacement_time(run)};
  }
  model.sizes = run.sizes;
  if (!model.sizes.unit) model.sizes.unit = unit;
}

std::vector<RunPhase> phases_of(const RunInputs& run, double tokens) {
  if (run.phases.empty()) return {{.tokens = tokens}};
  double sum = 0;
  for (const RunPhase& each : run.phases) sum += each.tokens;
  if (std::abs(sum / tokens - 1) > 0.01) {
    throw InputError{"/run/phases",
                     fmt::format("have {:.4g} tokens in all, --tokens says {:.4g}", sum, tokens)};
  }
  return run.phases;
}

}  // namespace

namespace {

/// The run of phases whose steps are predicted; what depends on a plan is that of the longest.
RunModel model_of(std::vector<PredictedPhase> phases, RunInputs& run) {
  RunModel model;
  const PredictedPhase* longest = &phases.front();
  const std::int64_t spares = run.spares ? run.spares->nodes : 0;
  for (PredictedPhase& phase : phases) {
    phase.planned.paid_gpus = (phase.planned.nodes + spares) * phase.question.cluster.node.gpus;
    model.fits = model.fits && phase.prediction.fit != models::Fit::no;
    model.fit = std::max(model.fit, phase.prediction.fit);
    model.fit_probability = std::min(model.fit_probability, phase.prediction.fit_probability);
    const double slower = straggling(run.jitter, static_cast<double>(phase.planned.gpus));
    phase.planned.step = phase.planned.step * slower;
    phase.planned.mfu /= slower;
    model.phases.push_back(phase.planned);
    if (phase.planned.alone() > longest->planned.alone()) longest = &phase;
  }
  model.node_size = static_cast<double>(longest->question.cluster.node.gpus) / usual_node_gpus;
  exchange_between(phases, run, model);
  ModelMaker{*longest, run, model}.make();
  for (std::size_t i = 0; i < phases.size(); ++i) slow_reads(phases[i], model, model.phases[i]);
  take_pool(*longest, run, model);
  model.intervals = run.intervals;
  model.maintenance = run.maintenance;
  model.residual_median = run.residual_median;
  model.residual_spread = run.residual_spread;
  return model;
}

}  // namespace

RunModel model_of(const Scenario& scenario, RunInputs& run, double tokens, bool all_in) {
  std::vector<PredictedPhase> phases;
  for (const RunPhase& each : phases_of(run, tokens)) {
    phases.push_back(predicted(of_phase(scenario, each).question(), each.tokens));
  }
  RunModel model = model_of(std::move(phases), run);
  if (all_in) model.all_in = {published_runs.mean, published_runs.deviation};
  return model;
}

namespace {

template <class Parse>
auto parsed(const char* flag, const std::optional<std::string>& text, Parse parse,
            std::string_view form) -> decltype(parse(*text)) {
  if (!text) return std::nullopt;
  if (const auto found = parse(*text)) return found;
  throw InputError{flag, fmt::format("expected {}, found '{}'", form, printable(*text, 60))};
}

double tokens_of(const WholeRunRequest& request, const Scenario& scenario) {
  if (request.tokens) return read_tokens_flag(*request.tokens);
  if (const auto tokens = scenario.tokens()) return *tokens;
  throw InputError{"--tokens", "missing, and the scenario states none"};
}

RunInputs inputs_of(const Scenario& scenario, const models::Question& question,
                    const std::optional<std::string>& failures) {
  const int of_node = question.cluster.node.gpus;
  return read_run(scenario, of_node, (question.plan.gpus() + of_node - 1) / of_node, failures);
}

}  // namespace

WholeRun whole_run_of(const Scenario& scenario, double tokens, std::size_t samples) {
  RunInputs run = inputs_of(scenario, scenario.question(), std::nullopt);
  return simulate_runs(model_of(scenario, run, tokens, false), samples, 1,
                       {.threads = 1, .progress = {}});
}

WholeRun whole_run_of(const models::Question& question, double tokens, std::size_t samples,
                      RunInputs run) {
  std::vector<PredictedPhase> phases;
  phases.push_back(predicted(question, tokens));
  return simulate_runs(model_of(std::move(phases), run), samples, 1,
                       {.threads = 1, .progress = {}});
}

WholeRunReport train(const WholeRunRequest& request, const Progress& progress) {
  const Scenario scenario = request.scenario.load();
  if (!(request.confidence > 0 && request.confidence < 1)) {
    throw InputError{"--confidence", "expected a probability between 0 and 1 such as 0.8"};
  }
  const models::Question question = scenario.question();
  RunInputs run = inputs_of(scenario, question, request.failures);
  WholeRunReport report{
      .scenario = scenario.name(),
      .model_name = question.model.name,
      .cluster = question.cluster.name,
      .software = question.software.name,
      .tokens = tokens_of(request, scenario),
      .run = {},
      .confidence = request.confidence,
      .deadline_days = parsed("--deadline", request.deadline, parse_days, days_form),
      .budget = parsed("--budget", request.budget, parse_dollars, dollars_form),
      .assumptions = {},
      .all_in = request.all_in};
  const RunModel model = model_of(scenario, run, report.tokens, request.all_in);
  report.run = simulate_runs(model, request.samples, request.seed, {request.threads, progress});
  report.stopped = report.run.samples == 0;
  report.assumptions = run.assumptions;
  return report;
}

double WholeRunReport::budget_probability() const {
  if (!run.cost) return 0;
  const auto within = std::ranges::upper_bound(run.sorted_cost, budget->count());
  return static_cast<double>(within - run.sorted_cost.begin()) /
         static_cast<double>(run.sorted_cost.size());
}

bool WholeRunReport::meets() const {
  if (!run.model.fits) return false;
  if (deadline_days && deadline_probability() < confidence) return false;
  return !budget || budget_probability() >= confidence;
}

}  // namespace orrery::scenarios
