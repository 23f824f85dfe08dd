#include "models/evaluation/traffic/evaluate.hpp"

#include <algorithm>
#include <memory>

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/network_sweep.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace traffic {

namespace {

/// Our step next to other jobs, whose steps follow one another until ours has ended.
class ConcurrentJobs {
 public:
  ConcurrentJobs(const Traffic& traffic, const LaunchDelays& delays)
      : traffic_{traffic}, delays_{delays}, events_{traffic} {
    add(traffic);
    for (const JobTraffic& each : traffic.others) add(each);
    step_ends_.resize(traffic.others.size());
  }

  /// Continues from `before`, which has stopped at our first joint collective and outlives this.
  ConcurrentJobs(const Traffic& traffic, const PrefixTraffic& prefix, const ConcurrentJobs& before)
      : traffic_{traffic},
        delays_{before.delays_},
        events_{traffic, prefix, before.events_},
        step_ends_{before.step_ends_} {
    add(traffic);
    for (const JobTraffic& each : traffic.others) add(each);
    JobPrefix job{.prefix = &prefix, .traffic = &prefix.traffic};
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (j > 0) job.traffic = &prefix.traffic.others[j - 1];
      jobs_[j]->resume(*before.jobs_[j], job);
      const JobTraffic& whole = j == 0 ? traffic : traffic.others[j - 1];
      job.first_rank += static_cast<std::uint32_t>(whole.ranks.size());
      job.first_prefix_rank += static_cast<std::uint32_t>(job.traffic->ranks.size());
    }
    for (const auto& each : jobs_) each->wake_all();
  }

  void begin() {
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) begin_step(job, 0);
  }

  void run_until_joint() {
    jobs_[0]->stop_at_joints();
    begin();
    while (!jobs_[0]->at_joint() && !events_.empty()) run_instant(events_.earliest());
  }

  NetworkTimes run() {
    while (!events_.empty()) {
      const std::int64_t at = events_.earliest();
      if (jobs_.size() > 1 && jobs_[0]->finished() && at > jobs_[0]->last().count()) break;
      run_instant(at);
    }
    jobs_[0]->refuse_unfinished();
    return result();
  }

 private:
  void add(const JobTraffic& job) {
    const auto number = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(std::make_unique<NetworkSweep>(job, traffic_.flow_classes, events_,
                                                   JobDelays{delays_, number}));
    job_of_class_.resize(job.flow_class_of_group(static_cast<std::uint32_t>(job.groups.size())),
                         number);
  }

  void run_instant(std::int64_t at) {
    events_.advance(at);
    while (events_.ready()) handle(events_.next(), at);
    events_.settle();
  }

  void handle(const TrafficEvents::Occurrence& each, std::int64_t now) {
    if (each.kind == TrafficEvents::Kind::step) return begin_step(each.id, now);
    if (each.kind != TrafficEvents::Kind::end) return;
    const std::uint32_t job = job_of_class_[each.id];
    const JobTraffic& traffic = job == 0 ? traffic_ : traffic_.others[job - 1];
    jobs_[job]->traffic_ended(each.id - traffic.first_flow_class, now);
    follow(job);
  }

  void begin_step(std::uint32_t job, std::int64_t at) {
    jobs_[job]->begin_step(at);
    follow(job);
  }

  /// Schedules another job's next step, once the end of this one is known.
  void follow(std::uint32_t job) {
    if (job == 0 || !jobs_[job]->finished()) return;
    const Time end = jobs_[job]->step_end();
    std::vector<Time>& ends = step_ends_[job - 1];
    ensure(end > (ends.empty() ? Time{} : ends.back()), "a step takes time");
    ends.push_back(end);
    events_.begin_step(job, end.count());
  }

  NetworkTimes result() {
    NetworkTimes found;
    jobs_[0]->add_times(found);
    found.overloaded = events_.overloaded();
    const LinkShares& shares = events_.shares();
    for (std::uint32_t id = 0; id < traffic_.flow_classes.size(); ++id) {
      found.lost.push_back(shares.lost(id));
      double all = 0;
      for (const auto& [other, part] : shares.losses().to(id)) all += static_cast<double>(part);
      auto& to = found.lost_to.emplace_back();
      for (const auto& [other, part] : shares.losses().to(id)) {
        to.emplace_back(other, static_cast<double>(part) / std::max(all, 1.0));
      }
    }
    found.transmissions = events_.transmissions();
    found.solves = shares.solves();
    for (std::vector<Time>& ends : step_ends_) {
      while (!ends.empty() && ends.back() > found.times.step) ends.pop_back();
      found.other_steps.push_back(std::move(ends));
    }
    return found;
  }

  const Traffic& traffic_;
  LaunchDelays delays_;
  TrafficEvents events_;
  std::vector<std::unique_ptr<NetworkSweep>> jobs_;
  std::vector<std::uint32_t> job_of_class_;
  std::vector<std::vector<Time>> step_ends_;  // of other jobs
};

}  // namespace

}  // namespace traffic

NetworkTimes evaluate_network(const Traffic& traffic, const LaunchDelays& delays) {
  if (!traffic.prefix) {
    traffic::ConcurrentJobs jobs{traffic, delays};
    jobs.begin();
    return jobs.run();
  }
  traffic::ConcurrentJobs prefix{traffic.prefix->traffic, delays};
  prefix.run_until_joint();
  return traffic::ConcurrentJobs{traffic, *traffic.prefix, prefix}.run();
}

}  // namespace orrery::models
