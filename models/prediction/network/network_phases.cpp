#include "models/prediction/network/network_phases.hpp"

#include <algorithm>
#include <numeric>

namespace orrery::models {

namespace {

LaunchDelays delays_of(const LaunchPhases& asked, std::size_t phase) {
  const std::size_t sample = static_cast<std::size_t>(asked.first) + phase;
  return {.seed = asked.seed, .sample = static_cast<std::uint32_t>(sample), .mean = asked.delay};
}

std::size_t nearest_to_mean(const std::vector<Time>& times) {
  const Time sum = std::accumulate(times.begin(), times.end(), Time{});
  const Time mean = scaled(sum, 1 / static_cast<double>(times.size()));
  const auto distance = [&](Time time) { return time > mean ? time - mean : mean - time; };
  const auto nearest = std::ranges::min_element(
      times, [&](Time one, Time other) { return distance(one) < distance(other); });
  return static_cast<std::size_t>(nearest - times.begin());
}

}  // namespace

NetworkTimes evaluate_phases(const LaunchPhases& asked, const Traffic& traffic,
                             const NetworkSite& site, NetworkAnswer& found) {
  const Traffic alone = traffic_alone(*traffic.priced, site, Folding::always);
  NetworkSite ours = site;
  ours.others.clear();
  const Traffic without =
      traffic.others.empty() ? Traffic{} : traffic_of(*traffic.priced, ours, Folding::always);
  PhasesAnswer& phases = found.phases;
  phases.asked = asked;
  for (int i = 0; i < asked.count; ++i) {
    const LaunchDelays delays = delays_of(asked, static_cast<std::size_t>(i));
    const Time step = evaluate_network(traffic, delays).times.step;
    phases.steps.push_back(step);
    phases.contention.push_back(step - evaluate_network(alone, delays).times.step);
    phases.from_jobs.push_back(
        traffic.others.empty() ? Time{} : step - evaluate_network(without, delays).times.step);
  }
  phases.representative = nearest_to_mean(phases.steps);
  found.contention = phases.contention[phases.representative];
  found.from_jobs = phases.from_jobs[phases.representative];
  return evaluate_network(traffic, delays_of(asked, phases.representative));
}

}  // namespace orrery::models
