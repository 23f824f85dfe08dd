#include "models/evaluation/traffic/evaluate.hpp"

#include <algorithm>

#include "models/evaluation/traffic/network_sweep.hpp"

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

NetworkTimes NetworkSweep::result() {
  NetworkTimes found;
  Time last{};
  for (const RankTrack& rank : ranks_) {
    found.ranks.push_back(queues_of(rank));
    last = std::max(last, found.ranks.back().last());
  }
  for (const ChannelTrack& channel : channels_) {
    found.transfers.push_back(channel.ends);
    if (!channel.ends.empty()) last = std::max(last, channel.ends.back());
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
  found.times.step = std::max(last, priced_.bound.time);
  found.overloaded = shares_.overloaded();
  for (std::uint32_t id = 0; id < traffic_.templates.size(); ++id) {
    found.lost.push_back(shares_.lost(id));
    double all = 0;
    for (const auto& [other, amount] : shares_.losses().to(id)) all += static_cast<double>(amount);
    auto& to = found.lost_to.emplace_back();
    for (const auto& [other, amount] : shares_.losses().to(id)) {
      to.emplace_back(other, static_cast<double>(amount) / std::max(all, 1.0));
    }
  }
  found.items = items_;
  found.solves = shares_.solves();
  return found;
}

/// The replica of the first rank that ends last, a transfer to it included.
std::uint32_t NetworkSweep::last_replica() const {
  std::vector<Time> ends;
  for (const RankTrack& rank : ranks_) {
    ends.push_back(queues_of(rank).last());
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    Time& end = ends[traffic_.channels[c].to];
    if (!channels_[c].ends.empty()) end = std::max(end, channels_[c].ends.back());
  }
  const auto last = std::max_element(ends.begin(), ends.end()) - ends.begin();
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
    times.inside.push_back(rank.inside_times);
    times.speeds.push_back(traffic_.ranks[folded(c)].speed);
  }
  for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
    const std::uint32_t id = traffic_.ranks[folded(program_.channels[c].to)].channel(c);
    times.transfers.push_back(channels_[id].ends);
    times.transfer_starts.push_back(channels_[id].starts);
  }
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    const JointTrack& joint = joints_[instance(folded(program_.collectives[j].classes[0]), j)];
    times.collective_starts.push_back(Time{joint.start});
    times.collective_ends.push_back(Time{joint.end});
  }
  return times;
}

}  // namespace traffic

NetworkTimes evaluate_network(const PricedProgram& priced, const Traffic& traffic) {
  return traffic::NetworkSweep{priced, traffic}.run();
}

}  // namespace orrery::models
