#include "scenarios/whole_run/whole_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "scenarios/whole_run/renewal.hpp"
#include "sim/input/units.hpp"
#include "sim/mean_and_spread.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

Seconds RunModel::alone() const {
  Seconds sum;
  for (const PlannedPhase& each : phases) sum += each.alone();
  return sum;
}

double RunModel::data_wait() const {
  double waiting = 0;
  for (const PlannedPhase& each : phases) waiting += each.alone().count() * each.data_wait;
  return waiting / alone().count();
}

double RunModel::gpu_hours_alone() const {
  double sum = 0;
  for (const PlannedPhase& each : phases) {
    sum += each.alone().count() / 3600 * static_cast<double>(each.gpus);
  }
  return sum;
}

bool RunModel::has_closed_form() const {
  return !spares && !replicas && !spot && !intervals && durable_every == 1;
}

double WholeRun::probability_within(double days) const {
  const auto within = std::ranges::upper_bound(sorted_days, days) - sorted_days.begin();
  return static_cast<double>(within) / static_cast<double>(sorted_days.size());
}

double WholeRun::days_within(double share) const {
  const auto place =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted_days.size())));
  return sorted_days.at(std::max<std::size_t>(place, 1) - 1);
}

namespace {

constexpr double ten_percent_deviations = 1.2815515655446004;  // of a normal variable

double normal_quantile(double share) {
  return boost::math::quantile(boost::math::normal{}, share);
}

/// What is not known beforehand, as shares of their distributions: 0.5 is the median.
struct Unknowns {
  double step = 0.5, rate = 0.5, restart = 0.5, residual = 0.5;
};

/// One simulated run, all in time except what says otherwise.
struct OneRun {
  RunLedger ledger;
  std::int64_t failures = 0;
  RunTime unexplained{}, evaluation{}, maintenance{}, reconfiguration{}, unused{};
  double peak_seconds = 0;  // of model FLOPs at the GPUs' peak
  double paid_gpu_hours = 0;
  std::vector<double> pool_hours{};  // of those, by pool
  std::vector<RunTime> failure_times{};

  RunTime total() const {
    return ledger.total() + unexplained + evaluation + maintenance + reconfiguration + unused;
  }
  double days() const { return in_seconds(total()).count() / seconds_per_day; }
};

class Simulator {
 public:
  explicit Simulator(const RunModel& model)
      : model_{model},
        process_{model.recovery, model.spares, model.intervals},
        rate_{gamma_table(std::min(model.rate.shape, 1e6))} {}

  /// rate of failures of a phase's nodes
  Seconds between_failures(const PlannedPhase& phase, double rate_share) const {
    const double per_node_day = rate_.at(rate_share) * model_.rate.mean();
    const double nodes = static_cast<double>(phase.nodes) * model_.node_size;
    const double per_day = per_node_day * nodes;
    return Seconds{per_day > 0 ? seconds_per_day / per_day : HUGE_VAL};
  }

  OneRun simulate(const Unknowns& unknowns, Draws& draws, bool keep_times = false) const {
    OneRun run;
    if (model_.spot) {
      simulate_spot(unknowns, draws, run);
    } else {
      for (const PlannedPhase& each : model_.phases) {
        simulate_phase(each, unknowns, draws, keep_times, run);
      }
    }
    const double phases = run.days();
    if (!model_.spot) add_maintenance(run);
    if (model_.all_in) take_all_in(unknowns, run);
    // Maintenance, and what is not explained, fall on every phase alike.
    run.paid_gpu_hours *= run.days() / phases;
    for (double& each : run.pool_hours) each *= run.days() / phases;
    return run;
  }

  /// Expected days by the closed form.
  double expected_days(const Unknowns& unknowns) const {
    if (model_.all_in) return alone_days() * all_in_factor(unknowns);
    double sum = 0;
    for (const PlannedPhase& each : model_.phases) {
      const Seconds between = between_failures(each, unknowns.rate);
      const double phi = std::isfinite(between.count())
                             ? restart_transform(model_.recovery, between, restart_scale(unknowns))
                             : 1;
      sum += expected_length(segments_of(each, unknowns), between, phi).count();
    }
    if (model_.maintenance) {
      sum += std::floor(sum / model_.maintenance->every.count()) * model_.maintenance->time.count();
    }
    return sum / seconds_per_day;
  }

 private:
  double alone_days() const { return model_.alone().count() / seconds_per_day; }

  double step_factor(const PlannedPhase& phase, const Unknowns& unknowns) const {
    if (model_.all_in) return 1;
    const double z = normal_quantile(unknowns.step) / ten_percent_deviations;
    return std::exp(z * (z < 0 ? phase.low : phase.high));
  }
  double residual(const Unknowns& unknowns) const {
    if (model_.all_in) return 1;
    return model_.residual_median *
           std::exp(model_.residual_spread * normal_quantile(unknowns.residual));
  }
  double restart_scale(const Unknowns& unknowns) const {
    return std::exp(model_.restart_spread * normal_quantile(unknowns.restart));
  }
  double all_in_factor(const Unknowns& unknowns) const {
    return std::exp(model_.all_in->first + model_.all_in->second * normal_quantile(unknowns.step));
  }
  /// Evaluation goes on between steps, at its share of the time.
  double with_evaluation() const {
    if (!model_.evaluation) return 1;
    return 1 + ratio(model_.evaluation->time, model_.evaluation->every);
  }

  Segments segments_of(const PlannedPhase& phase, const Unknowns& unknowns) const {
    const double stretch = step_factor(phase, unknowns) * residual(unknowns) * with_evaluation();
    const RunTime work = run_time(phase.alone() * stretch);
    // Steps between checkpoints are chosen beforehand: the time between them varies with the step.
    const Seconds interval = model_.interval * stretch;
    const bool saves = std::isfinite(interval.count()) && interval.count() * 1e6 < 0x1p60;
    return {.work = work,
            .interval = saves ? std::max(RunTime{1}, run_time(interval)) : work + RunTime{1},
            .stall = run_time(model_.stall),
            .lag = run_time(std::min(model_.write, saves ? interval : model_.write)),
            .durable_every = model_.durable_every,
            .durable_stall = run_time(model_.durable_stall)};
  }

  void simulate_phase(const PlannedPhase& phase, const Unknowns& unknowns, Draws& draws,
                      bool keep_times, OneRun& run) const {
    const Seconds between = between_failures(phase, unknowns.rate);
    const Segments segments = segments_of(phase, unknowns);
    SimulatedRun simulated;
    if (model_.replicas && model_.replicas->count > 1) {
      simulated = simulate_replicas(segments.work, *model_.replicas, between, draws);
    } else {
      process_.simulate(segments,
                        {.between_failures = between,
                         .restart_scale = restart_scale(unknowns),
                         .keep_times = keep_times},
                        draws, simulated);
    }
    const RunTime before = run.total();
    for (const RunTime each : simulated.failure_times) run.failure_times.push_back(before + each);
    split_useful(phase, unknowns, simulated.ledger, run);
    run.ledger += simulated.ledger;
    run.failures += simulated.failures;
    run.paid_gpu_hours +=
        in_seconds(run.total() - before).count() / 3600 * static_cast<double>(phase.paid_gpus);
  }

  /// Work is the predicted steps, what is known not to be modelled, and evaluation.
  void split_useful(const PlannedPhase& phase, const Unknowns& unknowns, RunLedger& ledger,
                    OneRun& run) const {
    const RunTime steps = run_time(phase.alone() * step_factor(phase, unknowns));
    const RunTime explained = run_time(in_seconds(ledger.useful) * (1 / with_evaluation()));
    run.evaluation += ledger.useful - explained;
    run.unexplained += explained - steps;
    ledger.useful = steps;
    run.peak_seconds += phase.alone().count() * phase.mfu;
  }

  void add_maintenance(OneRun& run) const {
    if (!model_.maintenance) return;
    const RunTime every = run_time(model_.maintenance->every);
    run.maintenance = run_time(model_.maintenance->time) * (run.total().count() / every.count());
  }

  void take_all_in(const Unknowns& unknowns, OneRun& run) const {
    const RunTime whole = run_time(model_.alone() * all_in_factor(unknowns));
    run.unexplained += whole - run.total();
  }

  /// A pool of spot instances: hardware that fails is gone like hardware that is taken.
  void simulate_spot(const Unknowns& unknowns, Draws& draws, OneRun& run) const {
    const std::int64_t nodes = model_.phases.front().nodes;
    const std::int64_t unit = model_.sizes.unit.value_or(1);
    const ElasticJob job{.from = model_.sizes.from.value_or(unit),
                         .to = model_.sizes.to.value_or(nodes),
                         .unit = unit,
                         .interval = run_time(model_.interval),
                         .stall = run_time(model_.stall),
                         .reconfigure = model_.sizes.reconfigure,
                         .hold = model_.sizes.hold,
                         .notice = model_.spot->notice};
    double alone = 0;
    for (const PlannedPhase& each : model_.phases) {
      alone += (each.alone() * step_factor(each, unknowns)).count();
    }
    const RunTime work = run_time(Seconds{alone * residual(unknowns) * with_evaluation()});
    const std::int64_t node_work = (work * nodes).count();
    ElasticAnswer answer;
    std::vector<NodeEvent> events;
    for (std::int64_t times = 2; times <= 256 && !answer.finished; times *= 2) {
      Draws same = draws;  // a longer trace begins like a shorter one
      events = pools_until(work * times, same);
      answer = run_elastic(events, job, work * times, node_work);
    }
    if (!answer.finished) {
      throw InputError{"/run/spot",
                       "the job makes too little progress to end: its nodes are taken "
                       "before a checkpoint, or are too few"};
    }
    take_elastic(answer, nodes, unknowns, run);
    if (!model_.pools.empty()) take_pools(events, answer.length, nodes, run);
  }

  /// Nodes of the i-th pool have numbers from i x pool_numbers on: those of earlier pools are used
  /// first.
  static constexpr std::int64_t pool_numbers = std::int64_t{1} << 40;

  std::vector<NodeEvent> pools_until(RunTime horizon, Draws& draws) const {
    const SpotInputs& one = *model_.spot;
    if (model_.pools.empty()) return pool_until(one.trace, one.market, horizon, draws);
    std::vector<NodeEvent> events;
    for (std::size_t i = 0; i < model_.pools.size(); ++i) {
      const NodePool& pool = model_.pools[i];
      Draws own{draws.bits(), i};
      for (NodeEvent& each : pool_until(pool.trace, pool.market, horizon, own)) {
        each.node += static_cast<std::int64_t>(i) * pool_numbers;
        events.push_back(std::move(each));
      }
    }
    return events;
  }

  /// GPU-hours of each pool: the time that its nodes were there.
  void take_pools(const std::vector<NodeEvent>& events, RunTime length, std::int64_t nodes,
                  OneRun& run) const {
    std::vector<double> node_time(model_.pools.size());
    std::map<std::int64_t, RunTime> since;
    const auto book = [&](std::int64_t node, RunTime from, RunTime to) {
      node_time[static_cast<std::size_t>(node / pool_numbers)] +=
          static_cast<double>((std::min(to, length) - std::min(from, length)).count());
    };
    std::vector<const NodeEvent*> order;
    for (const NodeEvent& each : events) order.push_back(&each);
    std::ranges::stable_sort(order, {}, [](const NodeEvent* each) { return each->at; });
    for (const NodeEvent* each : order) {
      if (each->change == NodeChange::up) {
        since.emplace(each->node, each->at);
      } else if (const auto found = since.find(each->node); found != since.end()) {
        book(each->node, found->second, each->at);
        since.erase(found);
      }
    }
    for (const auto& [node, from] : since) book(node, from, length);
    const double gpus =
        static_cast<double>(model_.phases.front().gpus) / static_cast<double>(nodes);
    for (const double each : node_time) run.pool_hours.push_back(each * 1e-6 / 3600 * gpus);
  }

  static std::vector<NodeEvent> pool_until(const std::optional<std::vector<NodeEvent>>& traced,
                                           const SpotMarket& market, RunTime horizon,
                                           Draws& draws) {
    if (!traced) return draw_market(market, horizon, draws);
    const std::vector<NodeEvent>& trace = *traced;
    std::vector<NodeEvent> events;
    const RunTime length = std::ranges::max(trace, {}, &NodeEvent::at).at + RunTime{1'000'000};
    // Every repetition begins with an empty pool.
    for (RunTime begin; begin < horizon; begin += length) {
      std::vector<std::int64_t> there;
      for (NodeEvent each : trace) {
        each.at += begin;
        std::erase(there, each.node);
        if (each.change == NodeChange::up) there.push_back(each.node);
        events.push_back(std::move(each));
      }
      for (const std::int64_t node : there) {
        events.push_back({begin + length - RunTime{1}, NodeChange::down, node});
      }
    }
    return events;
  }

  /// Node-time becomes time of the whole job at its length.
  void take_elastic(const ElasticAnswer& answer, std::int64_t nodes, const Unknowns& unknowns,
                    OneRun& run) const {
    const ElasticLedger& used = answer.ledger;
    const double paid = static_cast<double>(used.paid());
    const auto share = [&](std::int64_t part) {
      return RunTime{static_cast<std::int64_t>(static_cast<double>(answer.length.count()) *
                                               (static_cast<double>(part) / paid))};
    };
    run.failures = answer.changes;
    run.ledger.checkpoints = share(used.checkpoints);
    run.ledger.lost = share(used.lost);
    run.reconfiguration = share(used.reconfiguration);
    run.unused = share(used.unused);
    const RunTime useful = answer.length - run.total();
    run.ledger.useful =
        run_time(in_seconds(useful) * (1 / (residual(unknowns) * with_evaluation())));
    run.evaluation = run_time(in_seconds(run.ledger.useful) * (with_evaluation() - 1));
    run.unexplained = useful - run.ledger.useful - run.evaluation;
    for (const PlannedPhase& each : model_.phases) {
      run.peak_seconds +=
          each.alone().count() * each.mfu *
          (static_cast<double>(nodes) * in_seconds(answer.length).count() / (paid * 1e-6));
    }
    run.paid_gpu_hours = paid * 1e-6 / 3600 * static_cast<double>(model_.phases.front().gpus) /
                         static_cast<double>(nodes);
  }

  const RunModel& model_;
  RenewalProcess process_;
  QuantileTable rate_;
};

Unknowns unknowns_of(std::size_t sample, std::uint64_t seed) {
  const auto share = [&](std::size_t dimension) {
    return std::clamp(even_point(sample, dimension, seed), 1e-6, 1 - 1e-6);
  };
  return {share(0), share(1), share(2), share(3)};
}

template <class Value>
RunRange range_over(const std::vector<OneRun>& runs, Value value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const OneRun& each : runs) values.push_back(value(each));
  std::ranges::sort(values);
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {at(0.1), at(0.5), at(0.9), sum / static_cast<double>(values.size())};
}

/// Shares of all time of all runs. Restart time is split over stages in proportion to their means.
std::vector<Share> ledger_of(const std::vector<OneRun>& runs, const RunModel& model) {
  OneRun sum;
  for (const OneRun& each : runs) {
    sum.ledger += each.ledger;
    sum.unexplained += each.unexplained;
    sum.evaluation += each.evaluation;
    sum.maintenance += each.maintenance;
    sum.reconfiguration += each.reconfiguration;
    sum.unused += each.unused;
  }
  const auto share = [&](RunTime part) { return ratio(part, sum.total()); };
  const double waits = model.data_wait();
  std::vector<Share> shares{{"useful", share(sum.ledger.useful) * (1 - waits)},
                            {"checkpoints", share(sum.ledger.checkpoints)},
                            {"lost work", share(sum.ledger.lost)}};
  double stages = 0;
  for (const RestartStage& each : model.recovery.stages) stages += each.mean.count();
  const bool by_stage = !model.replicas && stages > 0;
  if (by_stage) {
    for (const RestartStage& each : model.recovery.stages) {
      shares.emplace_back("restart: " + each.name,
                          share(sum.ledger.restarts) * each.mean.count() / stages);
    }
  } else {
    shares.emplace_back("restarts", share(sum.ledger.restarts));
  }
  if (model.has_data) shares.emplace_back("input data", share(sum.ledger.useful) * waits);
  shares.emplace_back("waiting for people", share(sum.ledger.human));
  shares.emplace_back(model.replicas ? "replicas out" : "waiting for nodes",
                      share(sum.ledger.waiting));
  shares.emplace_back("evaluation", share(sum.evaluation));
  shares.emplace_back("maintenance", share(sum.maintenance));
  shares.emplace_back("reconfiguration", share(sum.reconfiguration));
  shares.emplace_back("unused nodes", share(sum.unused));
  shares.emplace_back("unexplained", share(sum.unexplained));
  return shares;
}

constexpr std::size_t few_runs = 200;

/// Mean days with everything at these values: exact where it can be.
double mean_days(const Simulator& simulator, const RunModel& model, const Unknowns& unknowns) {
  if (model.has_closed_form()) return simulator.expected_days(unknowns);
  double sum = 0;
  for (std::size_t i = 0; i < few_runs; ++i) {
    Draws draws{99, i};
    sum += simulator.simulate(unknowns, draws).days();
  }
  return sum / few_runs;
}

std::vector<Share> sensitivity_of(const Simulator& simulator, const RunModel& model) {
  const auto part = [&](double Unknowns::*which) {
    Unknowns low, high;
    low.*which = 0.1;
    high.*which = 0.9;
    return std::log(mean_days(simulator, model, high) / mean_days(simulator, model, low));
  };
  std::vector<double> days;
  for (std::size_t i = 0; i < few_runs; ++i) {
    Draws draws{98, i};
    days.push_back(simulator.simulate({}, draws).days());
  }
  std::vector<Share> parts;
  if (model.all_in) {
    parts.emplace_back("what published runs needed", part(&Unknowns::step));
    return parts;
  }
  parts.emplace_back("the step's error", part(&Unknowns::step));
  parts.emplace_back("what is not modelled", part(&Unknowns::residual));
  parts.emplace_back("the failure rate", part(&Unknowns::rate));
  parts.emplace_back("the restart time", part(&Unknowns::restart));
  parts.emplace_back("chance", std::log(quantile(days, 0.9) / quantile(days, 0.1)));
  std::ranges::stable_sort(parts, [](const Share& a, const Share& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  return parts;
}

double saved_by_fast_restarts(const Simulator& simulator, const RunModel& model) {
  if (model.all_in || model.spot || model.replicas) return 0;
  Unknowns fast;  // half of the median restart
  const double spread = std::max(model.restart_spread, 1e-9);
  fast.restart = std::max(boost::math::cdf(boost::math::normal{}, std::log(0.5) / spread), 1e-300);
  if (model.restart_spread <= 0) return 0;
  return mean_days(simulator, model, {}) - mean_days(simulator, model, fast);
}

}  // namespace

namespace {

/// Restarts that hardly ever succeed before the next failure would be simulated for ever.
void refuse_endless(const Simulator& simulator, const RunModel& model) {
  if (model.spot) return;
  constexpr double often = 0.999, least_transform = 1e-3, most_failures = 1e6;
  for (const PlannedPhase& each : model.phases) {
    const Seconds between = simulator.between_failures(each, often);
    if (!std::isfinite(between.count())) continue;
    if (model.replicas && model.replicas->count > 1) {
      // of those that should train
      const double there = 1 / (1 + ratio(model.replicas->out,
                                          between * static_cast<double>(model.replicas->count)));
      if (there > least_transform && each.alone().count() / there / between.count() < most_failures)
        continue;
      throw InputError{"/run/failures",
                       fmt::format("a failure every {:.3g} s, and replicas that are out for {:.3g} "
                                   "min: the run never ends",
                                   between.count(), model.replicas->out.count() / 60)};
    }
    const double phi = restart_transform(model.recovery, between, 1);
    const double segment = (model.interval + model.stall).count() / between.count();
    if (phi > least_transform && segment < -std::log(least_transform)) continue;
    throw InputError{
        "/run/failures",
        fmt::format(
            "a failure every {:.3g} min of running, and {}: the run never ends",
            between.count() / 60,
            phi > least_transform ? "checkpoints further apart" : "restarts that take longer")};
  }
}

}  // namespace

namespace {

/// Of a run: hours of each pool at its price, or all at one.
double dollars_of(const RunModel& model, const OneRun& run) {
  double sum = model.between_pools.count();
  if (run.pool_hours.empty()) return sum + run.paid_gpu_hours * model.price->count();
  for (std::size_t i = 0; i < run.pool_hours.size(); ++i) {
    sum += run.pool_hours[i] * model.pools[i].price.value_or(*model.price).count();
  }
  return sum;
}

/// Fixed pools alone are there all the time, and share what is paid by their nodes.
std::vector<std::pair<double, double>> pool_hours_of(const RunModel& model,
                                                     const std::vector<OneRun>& runs) {
  std::vector<std::pair<double, double>> pools;
  double all_nodes = 0;
  for (const NodePool& each : model.pools) all_nodes += static_cast<double>(each.nodes);
  for (std::size_t i = 0; i < model.pools.size(); ++i) {
    const double share = static_cast<double>(model.pools[i].nodes) / all_nodes;
    double hours = 0, there = 0;
    for (const OneRun& run : runs) {
      const bool elastic = !run.pool_hours.empty();
      hours += elastic ? run.pool_hours[i] : run.paid_gpu_hours * share;
      there += elastic ? run.pool_hours[i] / (run.days() * 24 * share *
                                              static_cast<double>(model.phases.front().gpus))
                       : 1;
    }
    const auto count = static_cast<double>(runs.size());
    pools.emplace_back(hours / count, there / count);
  }
  return pools;
}

}  // namespace

WholeRun simulate_runs(const RunModel& model, std::size_t samples, std::uint64_t seed,
                       const Workers& workers) {
  ensure(samples > 0 && !model.phases.empty(), "a run has phases, and is simulated");
  const Simulator simulator{model};
  refuse_endless(simulator, model);
  std::vector<OneRun> runs(samples);
  std::vector<double> expected(samples);
  constexpr std::size_t batch = 64;
  const std::size_t batches = (samples + batch - 1) / batch;
  const bool all = workers.work_through(batches, [&](std::size_t piece, unsigned) {
    for (std::size_t i = piece * batch; i < std::min(samples, (piece + 1) * batch); ++i) {
      const Unknowns unknowns = unknowns_of(i, seed);
      Draws draws{seed, i};
      runs[i] = simulator.simulate(unknowns, draws);
      if (model.has_closed_form()) expected[i] = simulator.expected_days(unknowns);
    }
  });
  WholeRun whole;
  whole.model = model;
  whole.seed = seed;
  whole.samples = all ? samples : 0;
  if (!all) return whole;
  whole.days = range_over(runs, [](const OneRun& each) { return each.days(); });
  whole.gpu_hours = range_over(runs, [](const OneRun& each) { return each.paid_gpu_hours; });
  // Uptime is the run's own: what is not explained stretches all of it.
  whole.ettr = range_over(runs, [&](const OneRun& each) {
    return model.all_in ? ratio(each.ledger.useful, each.total() - each.unexplained)
                        : ratio(each.ledger.useful + each.unexplained, each.total());
  });
  whole.goodput = range_over(runs, [](const OneRun& each) {
    return each.peak_seconds / in_seconds(each.total()).count();
  });
  whole.interruptions =
      range_over(runs, [](const OneRun& each) { return static_cast<double>(each.failures); });
  const auto energy = [&](const OneRun& each) {
    const RunTime pausing = each.ledger.checkpoints + each.ledger.restarts + each.ledger.human +
                            each.ledger.waiting + each.maintenance + each.reconfiguration;
    const Energy used = Energy{model.running.count() * in_seconds(each.total() - pausing).count() +
                               model.pausing.count() * in_seconds(pausing).count()};
    // Both powers are of the longest phase's GPUs.
    const double gpus =
        each.paid_gpu_hours / (each.days() * 24 * static_cast<double>(model.paid_gpus));
    return used.count() * gpus * model.pue / 3.6e9;
  };
  whole.energy_mwh = range_over(runs, energy);
  whole.co2_t =
      range_over(runs, [&](const OneRun& each) { return energy(each) * model.co2_kg_per_kwh; });
  if (model.price) {
    const auto cost = [&](const OneRun& each) { return dollars_of(model, each); };
    whole.cost = range_over(runs, cost);
    for (const OneRun& each : runs) whole.sorted_cost.push_back(cost(each));
    std::ranges::sort(whole.sorted_cost);
  }
  whole.pool_hours = pool_hours_of(model, runs);
  for (const OneRun& each : runs) {
    whole.sorted_days.push_back(each.days());
    whole.sorted_gpu_hours.push_back(each.paid_gpu_hours);
  }
  std::ranges::sort(whole.sorted_gpu_hours);
  whole.error_of_mean = mean_and_spread(whole.sorted_days).error;
  std::ranges::sort(whole.sorted_days);
  if (model.has_closed_form()) {
    whole.expected_days =
        std::accumulate(expected.begin(), expected.end(), 0.0) / static_cast<double>(samples);
  }
  whole.ledger = ledger_of(runs, model);
  whole.sensitivity = sensitivity_of(simulator, model);
  whole.days_saved_by_fast_restarts = saved_by_fast_restarts(simulator, model);
  if (!model.spot) {
    Draws draws{seed, 0};
    for (const RunTime each : simulator.simulate({}, draws, true).failure_times) {
      whole.failure_days.push_back(in_seconds(each).count() / seconds_per_day);
    }
  }
  return whole;
}

}  // namespace orrery::scenarios
