#include "scenarios/whole_run/renewal.hpp"

#include <algorithm>
#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>
#include <deque>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::scenarios {

RunLedger& RunLedger::operator+=(const RunLedger& other) {
  useful += other.useful;
  checkpoints += other.checkpoints;
  lost += other.lost;
  restarts += other.restarts;
  human += other.human;
  waiting += other.waiting;
  return *this;
}

namespace {

std::optional<QuantileTable> repair_table(const std::optional<Spares>& spares) {
  if (!spares) return std::nullopt;
  // A log-normal's mean over its median is e^{s^2/2}.
  const double ratio = spares->repair_mean.count() / spares->repair_median.count();
  return log_normal_table(spares->repair_median.count(),
                          std::sqrt(2 * std::log(std::max(1.0, ratio))));
}

const std::vector<RestartStage>& hard_stages(const Recovery& recovery) {
  return recovery.hard_stages.empty() ? recovery.stages : recovery.hard_stages;
}

/// Places of checkpoints.
class Places {
 public:
  explicit Places(const Segments& segments) : segments_{segments} {
    ensure(segments.interval.count() > 0 && segments.durable_every >= 1,
           "checkpoints are some work apart");
    each_ = segments.interval + segments.stall;
    block_ = each_ * segments.durable_every + segments.durable_stall;
    last_ = std::max<std::int64_t>(
        0, (segments.work.count() + segments.interval.count() - 1) / segments.interval.count() - 1);
  }

  RunTime at(std::int64_t i) const {
    return block_ * (i / segments_.durable_every) + each_ * (i % segments_.durable_every);
  }
  RunTime work_at(std::int64_t i) const { return segments_.interval * i; }
  RunTime end() const { return at(last_) + segments_.work - work_at(last_); }
  /// The last checkpoint that is durable at a place; negative if none is.
  std::int64_t durable_at(RunTime place) const {
    const RunTime since = place - segments_.lag;
    if (since.count() < 0) return -1;
    const std::int64_t blocks = since.count() / block_.count();
    const std::int64_t rest = (since.count() - blocks * block_.count()) / each_.count();
    return std::min(last_,
                    blocks * segments_.durable_every + std::min(rest, segments_.durable_every - 1));
  }

 private:
  const Segments& segments_;
  RunTime each_{}, block_{};
  std::int64_t last_ = 0;
};

}  // namespace

RenewalProcess::RenewalProcess(Recovery recovery, std::optional<Spares> spares,
                               std::optional<QuantileTable> intervals)
    : recovery_{std::move(recovery)},
      spares_{spares},
      intervals_{std::move(intervals)},
      repairs_{repair_table(spares)},
      soft_attempt_{sum_table(recovery_.stages)},
      hard_attempt_{recovery_.hard_stages.empty() ? soft_attempt_
                                                  : sum_table(recovery_.hard_stages)},
      human_{sum_table({&recovery_.human, 1})} {}

/// The state of one run.
class RenewalProcess::Replica {
 public:
  Replica(const RenewalProcess& process, const RunConditions& conditions, Draws& draws,
          SimulatedRun& run)
      : process_{process}, conditions_{conditions}, draws_{draws}, run_{run} {}

  void work_through(const Segments& segments) {
    const Places places{segments};
    std::int64_t from = 0;
    RunTime uptime = interval();
    while (true) {
      const RunTime left = places.end() - places.at(from);
      if (uptime >= left) {
        const RunTime work = segments.work - places.work_at(from);
        run_.ledger.useful += work;
        run_.ledger.checkpoints += left - work;
        return;
      }
      const bool hard = process_.recovery_.soft < 1 && draws_.uniform() >= process_.recovery_.soft;
      std::int64_t kept = std::max(from, places.durable_at(places.at(from) + uptime));
      if (hard) kept -= kept % segments.durable_every;
      book(places, from, kept, uptime);
      note_failure();
      from = kept;
      if (hard && process_.spares_) wait_for_node();
      uptime = restart(hard);
    }
  }

 private:
  RunTime interval() {
    const double mean = conditions_.between_failures.count();
    constexpr RunTime never{std::int64_t{1} << 61};
    if (!std::isfinite(mean)) return never;
    const double drawn =
        process_.intervals_ ? process_.intervals_->draw(draws_) : draws_.exponential();
    return RunTime{static_cast<std::int64_t>(std::min(drawn * mean * 1e6, 0x1p60))};
  }

  /// What is kept is useful, what is not is lost; a hard failure turns earlier work into lost work.
  void book(const Places& places, std::int64_t from, std::int64_t kept, RunTime uptime) {
    const RunTime advance = places.at(kept) - places.at(from);
    const RunTime work = places.work_at(kept) - places.work_at(from);
    run_.ledger.useful += work;
    run_.ledger.checkpoints += advance - work;
    run_.ledger.lost += uptime - advance;
  }

  void note_failure() {
    ++run_.failures;
    if (conditions_.keep_times) run_.failure_times.push_back(run_.ledger.total());
  }

  /// Until an attempt succeeds; what is left of the interval to the next failure.
  RunTime restart(bool hard) {
    while (true) {
      const RunTime human = time_of_people(process_.recovery_.human_share);
      const auto [attempts, called] = time_of_attempts(hard);
      const RunTime whole = human + called + attempts, next = interval();
      if (next >= whole) {
        run_.ledger.restarts += attempts;
        run_.ledger.human += human + called;
        return next - whole;
      }
      run_.ledger.restarts += next;
      note_failure();
    }
  }

  RunTime scaled_draw(const QuantileTable& table) {
    return RunTime{
        static_cast<std::int64_t>(table.draw(draws_) * conditions_.restart_scale * 1e6 + 0.5)};
  }

  RunTime time_of_people(double share) {
    const bool called = share > 0 && draws_.uniform() < share;
    return called ? scaled_draw(process_.human_) : RunTime{};
  }

  /// Of attempts, and of people who are called after too many.
  std::pair<RunTime, RunTime> time_of_attempts(bool hard) {
    const Recovery& recovery = process_.recovery_;
    const QuantileTable& attempt = hard ? process_.hard_attempt_ : process_.soft_attempt_;
    RunTime attempts = scaled_draw(attempt), called;
    for (int failed = 0; recovery.succeeds < 1 && draws_.uniform() >= recovery.succeeds;) {
      if (++failed == recovery.retries) {
        called += scaled_draw(process_.human_);
        failed = 0;
      }
      attempts += scaled_draw(attempt);
    }
    return {attempts, called};
  }

  /// A lost node goes into repair; time is lost while more are there than spares.
  void wait_for_node() {
    const RunTime now = run_.ledger.total();
    std::erase_if(repaired_, [&](RunTime end) { return end <= now; });
    const RunTime back = now + run_time(Seconds{process_.repairs_->draw(draws_)});
    const auto spares = static_cast<std::size_t>(process_.spares_->nodes);
    const std::size_t out = repaired_.size();  // without this one, in order
    const auto place = std::ranges::upper_bound(repaired_, back);
    if (out >= spares) {
      const RunTime until = spares == 0 ? back : std::min(back, repaired_[out - spares]);
      run_.ledger.waiting += RunTime{static_cast<std::int64_t>(
          static_cast<double>((until - now).count()) * process_.spares_->share)};
    }
    repaired_.insert(place, back);
  }

  const RenewalProcess& process_;
  const RunConditions& conditions_;
  Draws& draws_;
  SimulatedRun& run_;
  std::vector<RunTime> repaired_;  // ends of repairs, ascending
};

void RenewalProcess::simulate(const Segments& segments, const RunConditions& conditions,
                              Draws& draws, SimulatedRun& run) const {
  Replica{*this, conditions, draws, run}.work_through(segments);
}

namespace {

double stage_transform(const RestartStage& stage, double between, double scale) {
  const double mean = stage.mean.count() * scale;
  if (stage.shape <= 0) return std::exp(-mean / between);
  return std::pow(1 + mean / (stage.shape * between), -stage.shape);
}

double stages_transform(const std::vector<RestartStage>& stages, double between, double scale) {
  double product = 1;
  for (const RestartStage& each : stages) product *= stage_transform(each, between, scale);
  return product;
}

double whole_transform(const Recovery& recovery, double phi, double human) {
  const double failed = (1 - recovery.succeeds) * phi;
  const double all_failed = std::pow(failed, recovery.retries);
  const double attempts =
      recovery.succeeds * phi * (1 - all_failed) / ((1 - failed) * (1 - all_failed * human));
  return attempts * (1 - recovery.human_share + recovery.human_share * human);
}

}  // namespace

double restart_transform(const Recovery& recovery, Seconds between_failures, double scale) {
  const double between = between_failures.count();
  const double human = stage_transform(recovery.human, between, scale);
  const double soft = stages_transform(recovery.stages, between, scale);
  const double hard = stages_transform(hard_stages(recovery), between, scale);
  // Expected restarts add up, so it is 1/phi that is averaged over kinds of failures.
  return 1 / (recovery.soft / whole_transform(recovery, soft, human) +
              (1 - recovery.soft) / whole_transform(recovery, hard, human));
}

Seconds expected_length(const Segments& segments, Seconds between_failures, double phi) {
  const double between = between_failures.count();
  const std::int64_t whole = std::max<std::int64_t>(
      0, (segments.work.count() + segments.interval.count() - 1) / segments.interval.count() - 1);
  const double last = in_seconds(segments.work - segments.interval * whole).count();
  const double each = in_seconds(segments.interval + segments.stall).count();
  if (!std::isfinite(between)) return Seconds{last + static_cast<double>(whole) * each};
  const double lag = std::exp(in_seconds(segments.lag).count() / between);
  return Seconds{
      between / phi *
      (std::expm1(last / between) + static_cast<double>(whole) * lag * std::expm1(each / between))};
}

Seconds expected_period(const Segments& segments, Seconds between_failures, double soft,
                        double phi_soft, double phi_hard) {
  const double between = between_failures.count();
  const double soft_restart = between * (1 / phi_soft - 1);
  const double hard_restart = between * (1 / phi_hard - 1);
  double constant = 0, of_first = 0;  // T_j = constant + of_first T_0
  for (std::int64_t j = segments.durable_every; j-- > 0;) {
    RunTime length = segments.interval + segments.stall;
    if (j == segments.durable_every - 1) length += segments.durable_stall;
    const double through = std::exp(-in_seconds(length).count() / between), failed = 1 - through;
    const double all = 1 - failed * soft;
    constant = (between * failed + through * constant +
                failed * (soft * soft_restart + (1 - soft) * hard_restart)) /
               all;
    of_first = (through * of_first + failed * (1 - soft)) / all;
  }
  return Seconds{constant / (1 - of_first)};
}

Seconds best_interval(Seconds between_failures, Seconds stall) {
  const double between = between_failures.count();
  // W0 is flat at its branch point: below, a series replaces the difference of two near numbers.
  const double share = stall.count() / between;
  if (share < 1e-12) return Seconds{between * std::sqrt(2 * share)};
  return Seconds{between * (1 + boost::math::lambert_w0(-std::exp(-1 - share)))};
}

SimulatedRun simulate_replicas(RunTime work, const Replicas& replicas, Seconds between_failures,
                               Draws& draws) {
  const auto interval = [&] {
    return RunTime{static_cast<std::int64_t>(
        std::min(draws.exponential() * between_failures.count() * 1e6, 0x1p60))};
  };
  const RunTime stall = run_time(replicas.stall);
  // A replica that is out for less than the stall is back when the others go on.
  const RunTime out = std::max(stall, run_time(replicas.out)) - stall;
  SimulatedRun run;
  std::deque<RunTime> back;  // running time until each returns, from the last event
  // Work is counted in replica-time: n replicas do n of it in a unit of time.
  std::int64_t left = (work * replicas.count).count();
  RunTime next = interval(), running, stalled;
  while (left > 0) {
    const auto there = replicas.count - static_cast<std::int64_t>(back.size());
    RunTime step = next;
    if (!back.empty()) step = std::min(step, back.front());
    if (there > 0) step = std::min(step, RunTime{(left + there - 1) / there});
    left -= step.count() * there;
    running += step;
    next -= step;
    for (RunTime& each : back) each -= step;
    while (!back.empty() && back.front().count() <= 0) back.pop_front();
    if (left <= 0 || next.count() > 0) continue;
    next = interval();
    // The share of failures that hit replicas in service.
    if (draws.uniform() * static_cast<double>(replicas.count) >=
        static_cast<double>(replicas.count) - static_cast<double>(back.size())) {
      continue;
    }
    ++run.failures;
    stalled += stall;
    back.push_back(out);
  }
  run.ledger.useful = work;
  run.ledger.restarts = stalled;
  run.ledger.waiting = running - work;
  return run;
}

}  // namespace orrery::scenarios
