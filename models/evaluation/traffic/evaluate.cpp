#include "models/evaluation/traffic/evaluate.hpp"

#include <algorithm>
#include <memory>

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/network_sweep.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace traffic {

namespace {

QueueTimes queues_of(const RankTrack& rank) {
  QueueTimes times = queue_times(rank.state);
  times[Lane::host] = Time{rank.host};
  times[Lane::data] = Time{rank.data_free};
  return times;
}

}  // namespace

Time NetworkSweep::last() const {
  Time last{};
  for (const RankTrack& rank : ranks_) last = std::max(last, queues_of(rank).last());
  for (const ChannelTrack& channel : channels_) {
    last = std::max(last, Time{channel.free});
  }
  return last;
}

Time NetworkSweep::step_end() const {
  return std::max(last(), Time{begun_} + priced_.bound.time);
}

void NetworkSweep::add_times(NetworkTimes& found) const {
  for (const RankTrack& rank : ranks_) found.ranks.push_back(queues_of(rank));
  for (const ChannelTrack& channel : channels_) {
    found.transfers.push_back(channel.all(&ChannelTrack::ends));
  }
  for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
    std::vector<Time>&starts = found.collective_starts.emplace_back(),
    &ends = found.collective_ends.emplace_back();
    const std::size_t groups = groups_of_structure_[traffic_.structure_of_joint[j]].size();
    for (std::size_t g = 0; g < groups; ++g) {
      starts.push_back(Time{joints_[first_instance_[j] + g].start});
      ends.push_back(Time{joints_[first_instance_[j] + g].end});
    }
  }
  found.times = replica(last_replica());
  found.times.step = step_end();
}

/// The replica of the rank that ends last, transfers to it included; of equals, the first.
std::uint32_t NetworkSweep::last_replica() const {
  std::vector<Time> ends;
  for (const RankTrack& rank : ranks_) {
    ends.push_back(queues_of(rank).last());
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    Time& end = ends[traffic_.channels[c].to];
    end = std::max(end, Time{channels_[c].free});
  }
  const auto last = std::ranges::max_element(ends) - ends.begin();
  const auto replicas =
      static_cast<std::uint32_t>(traffic_.folded.size() / program_.classes.size());
  return traffic_.ranks[static_cast<std::size_t>(last)].first % replicas;
}

StepTimes NetworkSweep::replica(std::uint32_t number) const {
  StepTimes times;
  const std::size_t replicas = traffic_.folded.size() / program_.classes.size();
  const auto folded = [&](std::size_t c) { return traffic_.folded[c * replicas + number]; };
  for (std::size_t c = 0; c < program_.classes.size(); ++c) {
    const RankTrack& rank = ranks_[folded(c)];
    times.ranks.push_back(queues_of(rank));
    times.collectives_ready.push_back(rank.ready);
    times.inside.push_back(inside_of(folded(c)));
    times.speeds.push_back(traffic_.ranks[folded(c)].speed);
  }
  for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
    const std::uint32_t id = traffic_.ranks[folded(program_.channels[c].to)].channel(c);
    times.transfers.push_back(channels_[id].all(&ChannelTrack::ends));
    times.transfer_starts.push_back(channels_[id].all(&ChannelTrack::starts));
  }
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    const JointTrack& joint = joints_[instance(folded(program_.collectives[j].classes[0]), j)];
    times.collective_starts.push_back(Time{joint.start});
    times.collective_ends.push_back(Time{joint.end});
  }
  return times;
}

namespace {

/// Our step next to other jobs, whose steps follow one another until ours has ended.
class ConcurrentJobs {
 public:
  ConcurrentJobs(const Traffic& traffic, const LaunchDelays& delays)
      : traffic_{traffic}, delays_{delays}, wires_{traffic} {
    add(traffic);
    for (const JobTraffic& each : traffic.others) add(each);
    step_ends_.resize(traffic.others.size());
  }

  /// Continues from `before`, which has stopped at our first joint collective and outlives this.
  ConcurrentJobs(const Traffic& traffic, const EarlyTraffic& early, const ConcurrentJobs& before)
      : traffic_{traffic},
        delays_{before.delays_},
        wires_{traffic, early, before.wires_},
        step_ends_{before.step_ends_} {
    add(traffic);
    for (const JobTraffic& each : traffic.others) add(each);
    EarlyJob job{.early = &early, .traffic = &early.traffic};
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (j > 0) job.traffic = &early.traffic.others[j - 1];
      jobs_[j]->go_on(*before.jobs_[j], job);
      const JobTraffic& whole = j == 0 ? traffic : traffic.others[j - 1];
      job.first_rank += static_cast<std::uint32_t>(whole.ranks.size());
      job.first_early_rank += static_cast<std::uint32_t>(job.traffic->ranks.size());
    }
    for (std::uint32_t j = 0; j < jobs_.size(); ++j) jobs_[j]->wake_all();
  }

  void begin() {
    for (std::uint32_t job = 0; job < jobs_.size(); ++job) begin_step(job, 0);
  }

  void run_until_joint() {
    jobs_[0]->stop_at_joints();
    begin();
    while (!jobs_[0]->at_joint() && !wires_.empty()) run_instant(wires_.earliest());
  }

  NetworkTimes run() {
    while (!wires_.empty()) {
      const std::int64_t at = wires_.earliest();
      if (jobs_.size() > 1 && jobs_[0]->finished() && at > jobs_[0]->last().count()) break;
      run_instant(at);
    }
    jobs_[0]->refuse_unfinished();
    return result();
  }

 private:
  void add(const JobTraffic& job) {
    const auto number = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(std::make_unique<NetworkSweep>(job, traffic_.templates, wires_,
                                                   JobDelays{delays_, number}));
    job_of_template_.resize(job.group_template(static_cast<std::uint32_t>(job.groups.size())),
                            number);
  }

  void run_instant(std::int64_t at) {
    wires_.advance(at);
    while (wires_.ready()) handle(wires_.next(), at);
    wires_.settle();
  }

  void handle(const Wires::Happening& each, std::int64_t now) {
    if (each.kind == Wires::Event::step) return begin_step(each.id, now);
    if (each.kind != Wires::Event::end) return;
    const std::uint32_t job = job_of_template_[each.id];
    const JobTraffic& traffic = job == 0 ? traffic_ : traffic_.others[job - 1];
    jobs_[job]->traffic_ended(each.id - traffic.first_template, now);
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
    wires_.begin_step(job, end.count());
  }

  NetworkTimes result() {
    NetworkTimes found;
    jobs_[0]->add_times(found);
    found.overloaded = wires_.overloaded();
    const WireShares& shares = wires_.shares();
    for (std::uint32_t id = 0; id < traffic_.templates.size(); ++id) {
      found.lost.push_back(shares.lost(id));
      double all = 0;
      for (const auto& [other, part] : shares.losses().to(id)) all += static_cast<double>(part);
      auto& to = found.lost_to.emplace_back();
      for (const auto& [other, part] : shares.losses().to(id)) {
        to.emplace_back(other, static_cast<double>(part) / std::max(all, 1.0));
      }
    }
    found.items = wires_.items();
    found.solves = shares.solves();
    for (std::vector<Time>& ends : step_ends_) {
      while (!ends.empty() && ends.back() > found.times.step) ends.pop_back();
      found.other_steps.push_back(std::move(ends));
    }
    return found;
  }

  const Traffic& traffic_;
  LaunchDelays delays_;
  Wires wires_;
  std::vector<std::unique_ptr<NetworkSweep>> jobs_;
  std::vector<std::uint32_t> job_of_template_;
  std::vector<std::vector<Time>> step_ends_;  // of other jobs
};

}  // namespace

}  // namespace traffic

NetworkTimes evaluate_network(const Traffic& traffic, const LaunchDelays& delays) {
  if (!traffic.early) {
    traffic::ConcurrentJobs jobs{traffic, delays};
    jobs.begin();
    return jobs.run();
  }
  traffic::ConcurrentJobs early{traffic.early->traffic, delays};
  early.run_until_joint();
  return traffic::ConcurrentJobs{traffic, *traffic.early, early}.run();
}

}  // namespace orrery::models
