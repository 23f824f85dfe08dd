#include "calibrate/harness/harness.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>

#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

class MachineClock : public Clock {
 public:
  Time now() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return Time{std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000};
  }

  Time busy() override {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return Time{(time.tv_sec * 1'000'000'000 + time.tv_nsec) * 1000};
  }

  /// A chain of dependent multiplications, which takes clock cycles but no memory, in CPU time: a
  /// slower clock or a busy sibling core shows, a preemption does not.
  Time reference_work() override {
    const Time begin = busy();
    std::uint64_t x = 88172645463325252u;
    for (int i = 0; i < 50'000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    sink_ = x;
    return busy() - begin;
  }

 private:
  volatile std::uint64_t sink_ = 0;
};

Time whole(const std::vector<Time>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Time{});
}

}  // namespace

std::unique_ptr<Clock> machine_clock() {
  return std::make_unique<MachineClock>();
}

double relative_spread(const std::vector<Time>& values) {
  if (values.size() < 2) return 0;
  const Time middle = quantile(values, 0.5);
  if (middle <= Time{}) return 0;
  return ratio(quantile(values, 0.75) - quantile(values, 0.25), middle);
}

Time Measurement::median(std::size_t part) const {
  return quantile(parts.at(part), 0.5);
}

/// Runs between two measurements of the reference work.
struct Harness::Batch {
  std::vector<std::vector<Time>> runs;       // by run, by part
  std::vector<std::vector<Time>> preempted;  // runs that reported a disturbance
  Time worst_reference{};

  const std::vector<std::vector<Time>>& best_runs() const {
    return runs.empty() ? preempted : runs;
  }
};

bool Harness::less_disturbed(const Batch& batch, const std::optional<Batch>& other) {
  if (!other) return true;
  if (batch.runs.empty() != other->runs.empty()) return other->runs.empty();
  return batch.worst_reference < other->worst_reference;
}

Harness::Harness(Clock& clock, Rules rules, std::uint64_t seed)
    : clock_{clock}, rules_{rules}, order_{seed} {
  start();
  best_reference_ = clock_.reference_work();
  for (int i = 0; i < 4; ++i) best_reference_ = std::min(best_reference_, clock_.reference_work());
}

Time Harness::left() {
  return std::max(Time{}, end_ - clock_.now());
}

Harness::Batch Harness::run_batch(Subject& subject, Time limit) {
  Batch batch;
  batch.worst_reference = clock_.reference_work();
  const Time stop = clock_.now() + std::min(limit, rules_.batch);
  do {
    std::vector<Time> times(subject.parts());
    const bool undisturbed = subject.run(times);
    (undisturbed ? batch.runs : batch.preempted).push_back(std::move(times));
  } while (clock_.now() < stop && static_cast<int>(batch.runs.size()) < rules_.most_runs);
  const Time after = clock_.reference_work();
  best_reference_ = std::min({best_reference_, batch.worst_reference, after});
  batch.worst_reference = std::max(batch.worst_reference, after);
  return batch;
}

Measurement Harness::measure_one(Subject& subject, Time limit) {
  Measurement found;
  found.name = subject.name();
  found.parts.resize(subject.parts());
  const Time stop = clock_.now() + limit;
  subject.prepare();
  std::vector<Time> times(subject.parts());
  for (int i = 0; i < rules_.warm_up; ++i) subject.run(times);

  std::vector<Time> wholes;
  std::optional<Batch> least_disturbed;
  const auto keep = [&](const std::vector<std::vector<Time>>& runs) {
    for (const auto& run : runs) {
      for (std::size_t p = 0; p < run.size(); ++p) found.parts[p].push_back(run[p]);
      wholes.push_back(whole(run));
    }
  };
  do {
    Batch batch = run_batch(subject, stop - clock_.now());
    found.discarded_runs += static_cast<int>(batch.preempted.size());
    const bool calm =
        !rules_.watches_host || ratio(batch.worst_reference, best_reference_) <= rules_.disturbed;
    if (!batch.runs.empty() && calm) {
      keep(batch.runs);
    } else {
      found.discarded_runs += static_cast<int>(batch.runs.size());
      if (less_disturbed(batch, least_disturbed)) least_disturbed = std::move(batch);
    }
    found.spread = relative_spread(wholes);
    const bool enough = static_cast<int>(wholes.size()) >= rules_.least_runs;
    found.settled = enough && found.spread < rules_.settled;
  } while (!found.settled && clock_.now() < stop &&
           static_cast<int>(wholes.size()) < rules_.most_runs);
  if (wholes.empty()) {
    found.disturbed = true;
    const auto& best = least_disturbed->best_runs();
    found.discarded_runs -= static_cast<int>(best.size());
    keep(best);
    found.spread = relative_spread(wholes);
  }
  subject.finish();
  discarded_ += found.discarded_runs;
  return found;
}

std::vector<Measurement> Harness::measure(const std::vector<Subject*>& subjects, double share,
                                          const Watcher& watcher, const Taker& taker) {
  std::vector<std::size_t> order(subjects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), order_);
  const Time end = clock_.now() + scaled(left(), share);
  std::vector<std::optional<Measurement>> found(subjects.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (watcher && !watcher(i, order.size())) break;
    const Time remaining = end - clock_.now();
    if (remaining <= Time{}) break;
    const auto points = static_cast<std::int64_t>(order.size() - i);
    const Time limit = std::min(rules_.point, Time{remaining.count() / points});
    Subject& subject = *subjects[order[i]];
    try {
      found[order[i]] = measure_one(subject, limit);
    } catch (const std::exception& failure) {
      if (!rules_.goes_on) throw;
      failures_.push_back(subject.name() + ": " + failure.what());
      subject.finish();
    }
    if (taker && found[order[i]]) taker(*found[order[i]]);
  }
  if (watcher) watcher(order.size(), order.size());
  std::vector<Measurement> answer;
  for (auto& each : found) {
    if (each) answer.push_back(std::move(*each));
  }
  return answer;
}

}  // namespace orrery::calibrate
