// How links are shared. Once per instant, from the links that it touched: find the components as
// they are now (flows that started merge them, flows that ended split them), fill each with rates,
// and set its one event.

#include <algorithm>
#include <limits>

#include "sim/errors.hpp"
#include "sim/flows/network.hpp"

namespace orrery {
namespace {

/// Links whose shares differ by less than this part are full at the same level: what integer
/// division leaves over must not order links that are equal.
constexpr int tie_bits = 32;

Int128 divided_up(Int128 amount, std::uint64_t rate) {
  return (amount + rate - 1) / rate;
}

}  // namespace

void Network::settle() {
  settling_ = false;
  ++settlement_;
  std::uint64_t settled = 0;
  for (const std::uint32_t link : touched_) {
    links_[link].touched = false;
    if (links_[link].settled == settlement_ || links_[link].flows.empty()) continue;
    const std::uint32_t index = new_component();
    collect(link, index);
    Component& component = components_[index];
    settled += component.flows.size();
    component.since = engine_.now();
    component.end = engine_.after(fill(), [this, index] { end_next(index); });
  }
  touched_.clear();
  ensure(settled == unsettled_, "flows were lost or counted twice when links were settled");
  unsettled_ = 0;

  for (const std::uint32_t flow : retired_flows_) {
    flows_[flow].rate = 0;
    flows_[flow].component = none;
    flows_[flow].route.clear();
    free_flows_.push_back(flow);
  }
  retired_flows_.clear();
  for (const std::uint32_t component : dissolved_) {
    components_[component].flows.clear();
    free_components_.push_back(component);
  }
  dissolved_.clear();
}

std::uint32_t Network::new_component() {
  if (free_components_.empty()) {
    components_.emplace_back();
    return static_cast<std::uint32_t>(components_.size() - 1);
  }
  const std::uint32_t component = free_components_.back();
  free_components_.pop_back();
  components_[component].dissolved = false;
  return component;
}

/// Its flows must all be found again, in one component or in several.
void Network::dissolve(std::uint32_t component) {
  engine_.cancel(components_[component].end);
  components_[component].dissolved = true;
  unsettled_ += components_[component].flows.size();
  dissolved_.push_back(component);
}

/// All links that flows connect with `first` into `filling_`, and their flows into the component.
void Network::collect(std::uint32_t first, std::uint32_t component) {
  filling_.assign(1, first);
  links_[first].settled = settlement_;
  for (std::size_t next = 0; next < filling_.size(); ++next) {
    const std::uint32_t link = filling_[next];
    tanks_[link] = {.left = links_[link].capacity,
                    .share = 0,
                    .open = static_cast<std::uint32_t>(links_[link].flows.size())};
    for (const Crossing crossing : links_[link].flows) {
      if (flows_[crossing.flow].component != component) adopt(crossing.flow, component);
    }
  }
}

void Network::adopt(std::uint32_t index, std::uint32_t component) {
  Flow& flow = flows_[index];
  if (flow.component != none) {
    if (!components_[flow.component].dissolved) dissolve(flow.component);
    const Time elapsed = engine_.now() - components_[flow.component].since;
    flow.remaining -= Int128{elapsed.count()} * flow.rate;
    ensure(flow.remaining > 0, "a flow has carried all its bytes and has not ended");
  }
  flow.component = component;
  flow.rate = 0;
  components_[component].flows.push_back(index);
  for (const Hop hop : flow.route) {
    if (links_[hop.link].settled == settlement_) continue;
    links_[hop.link].settled = settlement_;
    filling_.push_back(hop.link);
  }
}

/// Progressive filling of `filling_`: the links with the least share are full, their flows have
/// that rate, and the others share what is left. Returns the time to the first end:
///   min over levels of ceil(least remaining of the flows at the level / level)
Time Network::fill() {
  Int128 first_end = std::numeric_limits<std::int64_t>::max() - engine_.now().count();
  bool ends = false;
  while (const std::uint64_t level = fill_lowest()) {
    Int128 least = std::numeric_limits<Int128>::max();
    for (const std::uint32_t link : full_) least = std::min(least, freeze(link, level));
    const Int128 end = divided_up(least, level);
    if (end > first_end) continue;
    first_end = end;
    ends = true;
  }
  ensure(ends, "a flow would last beyond the end of time, 106 days");
  return Time{static_cast<std::int64_t>(first_end)};
}

/// Drops the links that are done, brings the shares of the others up to date, and puts those with
/// the least one into `full_`. Returns that share; 0: all are done.
std::uint64_t Network::fill_lowest() {
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  std::size_t kept = 0;
  for (const std::uint32_t link : filling_) {
    Tank& tank = tanks_[link];
    if (tank.open == 0) continue;
    filling_[kept++] = link;
    if (tank.share == 0) tank.share = tank.left / tank.open;
    lowest = std::min(lowest, tank.share);
  }
  filling_.resize(kept);
  if (kept == 0) return 0;
  ensure(lowest > 0, "a link has more flows than it has rate to share");
  const std::uint64_t tied = lowest + (lowest >> tie_bits);
  full_.clear();
  for (const std::uint32_t link : filling_) {
    if (tanks_[link].share <= tied) full_.push_back(link);
  }
  return lowest;
}

/// Gives the open flows of a link their rate; returns the least that one of them has to carry.
Int128 Network::freeze(std::uint32_t link, std::uint64_t level) {
  Int128 least = std::numeric_limits<Int128>::max();
  for (const Crossing crossing : links_[link].flows) {
    Flow& flow = flows_[crossing.flow];
    if (flow.rate != 0) continue;
    flow.rate = level;
    least = std::min(least, flow.remaining);
    for (const Hop hop : flow.route) {
      Tank& crossed = tanks_[hop.link];
      crossed.left -= level;
      crossed.share = 0;
      --crossed.open;
    }
  }
  return least;
}

}  // namespace orrery
