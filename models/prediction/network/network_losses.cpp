#include "models/prediction/network/network_losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace orrery::models {

namespace {

std::string traffic_name(const JobTraffic& job, std::uint32_t id) {
  const Program& program = *job.priced->program;
  if (id < job.channels.size()) {
    const Channel& channel = program.channels[job.channels[id].channel];
    return fmt::format("{} from stage {}", program.communicators[channel.communicator].name,
                       program.classes[channel.from].stage);
  }
  const FoldedGroup& group = job.groups[id - job.channels.size()];
  const std::string& name = program.communicators[group.communicator].name;
  const auto class_of = [&](std::uint32_t rank) { return job.ranks[rank].rank_class; };
  const std::uint32_t first = class_of(group.members[0]);
  for (const std::uint32_t member : group.members) {
    if (class_of(member) != first) return name;
  }
  return fmt::format("{} of stage {}", name, program.classes[first].stage);
}

/// Name of a flow class of any job; of another job it is "dp of stage 3 of /jobs/0".
std::string name_of(const Traffic& traffic, std::uint32_t id) {
  for (std::size_t i = traffic.others.size(); i-- > 0;) {
    const JobTraffic& job = traffic.others[i];
    if (id < job.first_flow_class) continue;
    return fmt::format("{} of /jobs/{}", traffic_name(job, id - job.first_flow_class),
                       traffic.other_of_site[i]);
  }
  return traffic_name(traffic, id);
}

/// To which other traffic a flow class lost time, by name, largest share first.
std::vector<std::pair<std::string, double>> lost_to(
    const Traffic& traffic, const std::vector<std::pair<std::uint32_t, double>>& others) {
  std::map<std::string, double> shares;
  for (const auto& [id, share] : others) shares[name_of(traffic, id)] += share;
  std::vector<std::pair<std::string, double>> sorted{shares.begin(), shares.end()};
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace

std::vector<TrafficLoss> losses_of(const Traffic& traffic, const NetworkTimes& times) {
  std::map<std::string, std::uint32_t> worst;
  const auto own = static_cast<std::uint32_t>(traffic.channels.size() + traffic.groups.size());
  for (std::uint32_t id = 0; id < own; ++id) {
    if (times.lost[id] == Time{}) continue;
    const auto [at, fresh] = worst.try_emplace(traffic_name(traffic, id), id);
    if (!fresh && times.lost[at->second] < times.lost[id]) at->second = id;
  }
  std::vector<TrafficLoss> losses;
  for (const auto& [name, id] : worst) {
    losses.push_back({name, times.lost[id], lost_to(traffic, times.lost_to[id])});
  }
  std::ranges::stable_sort(
      losses, [](const TrafficLoss& a, const TrafficLoss& b) { return a.lost > b.lost; });
  return losses;
}

std::vector<FullLinks> links_of(const NamedLinks& named, const Traffic& traffic,
                                const NetworkTimes& times) {
  std::vector<FullLinks> links;
  for (std::size_t link = 0; link < traffic.link_classes.size(); ++link) {
    if (times.overloaded[link] == Time{}) continue;
    links.push_back({named.name(traffic.link_classes[link].link), traffic.link_classes[link].size,
                     times.overloaded[link]});
  }
  std::ranges::stable_sort(
      links, [](const FullLinks& a, const FullLinks& b) { return a.overloaded > b.overloaded; });
  return links;
}

}  // namespace orrery::models
