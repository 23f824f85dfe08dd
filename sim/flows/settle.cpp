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
    if (!inherit(link, index)) collect(link, index);
    Component& component = components_[index];
    settled += component.flows.size();
    component.links = filling_.size();
    component.since = engine_.now();
    component.end = engine_.after(fill(), [this, index] { end_next(index); });
  }
  touched_.clear();
  ensure(settled == unsettled_, "flows were lost or counted twice when links were settled");
  unsettled_ = 0;
  joined_ = false;

  for (const std::uint32_t flow : retired_flows_) {
    flows_[flow].rate = 0;
    flows_[flow].component = none;
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

/// The common case at a fraction of the cost: flows have ended, none has started, and the links
/// that are left still hang together. Then the heir takes over the flows without a look at each.
bool Network::inherit(std::uint32_t first, std::uint32_t heir) {
  const std::uint32_t old = flows_[links_[first].flows.front().flow].component;
  if (joined_ || old == none || !components_[old].dissolved) return false;
  const std::size_t links = components_[old].links;
  filling_.assign(1, first);
  links_[first].settled = settlement_;
  for (std::size_t next = 0; next < filling_.size() && filling_.size() < links; ++next) {
    for (const Crossing crossing : links_[filling_[next]].flows) spread(crossing.flow);
  }
  if (filling_.size() < links) {
    for (const std::uint32_t link : filling_) links_[link].settled = 0;
    return false;
  }
  components_[heir].flows.swap(components_[old].flows);
  for (const std::uint32_t flow : components_[heir].flows) {
    flows_[flow].component = heir;
    flows_[flow].rate = 0;
  }
  return true;
}

/// All links that flows connect with `first` into `filling_`, and their flows into the component.
void Network::collect(std::uint32_t first, std::uint32_t component) {
  filling_.assign(1, first);
  links_[first].settled = settlement_;
  for (std::size_t next = 0; next < filling_.size(); ++next) {
    for (const Crossing crossing : links_[filling_[next]].flows) {
      if (flows_[crossing.flow].component == component) continue;
      adopt(crossing.flow, component);
      spread(crossing.flow);
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
}

void Network::spread(std::uint32_t flow) {
  for (const Hop hop : path(flow)) {
    if (links_[hop.link].settled == settlement_) continue;
    links_[hop.link].settled = settlement_;
    filling_.push_back(hop.link);
  }
}

/// Progressive filling of `filling_`: the links with the least share are full, their flows have
/// that rate, and the others share what is left. Returns the time to the first end:
///   min over levels of ceil(least remaining of the flows at the level / level)
Time Network::fill() {
  shares_.clear();
  for (const std::uint32_t link : filling_) {
    const auto open = static_cast<std::uint32_t>(links_[link].flows.size());
    tanks_[link] = {.left = links_[link].capacity,
                    .open = open,
                    .place = static_cast<std::uint32_t>(shares_.size())};
    shares_.push_back(links_[link].capacity / open);
  }
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

/// Brings shares up to date and puts the links with the least one into `full_`. Returns that share;
/// 0: no flow is open.
std::uint64_t Network::fill_lowest() {
  for (const std::uint32_t link : changed_) {
    Tank& tank = tanks_[link];
    tank.changed = false;
    if (tank.open > 0) {
      shares_[tank.place] = tank.left / tank.open;
    } else {
      drop(tank.place);
    }
  }
  changed_.clear();
  if (shares_.empty()) return 0;
  const std::uint64_t lowest = *std::min_element(shares_.begin(), shares_.end());
  ensure(lowest > 0, "a link has more flows than it has rate to share");
  const std::uint64_t tied = lowest + (lowest >> tie_bits);
  full_.clear();
  for (std::size_t place = 0; place < shares_.size(); ++place) {
    if (shares_[place] <= tied) full_.push_back(filling_[place]);
  }
  return lowest;
}

/// The last link takes the place of one that has no open flow.
void Network::drop(std::uint32_t place) {
  filling_[place] = filling_.back();
  shares_[place] = shares_.back();
  tanks_[filling_[place]].place = place;
  filling_.pop_back();
  shares_.pop_back();
}

/// Gives the open flows of a link their rate; returns the least that one of them has to carry.
Int128 Network::freeze(std::uint32_t link, std::uint64_t level) {
  Int128 least = std::numeric_limits<Int128>::max();
  for (const Crossing crossing : links_[link].flows) {
    Flow& flow = flows_[crossing.flow];
    if (flow.rate != 0) continue;
    flow.rate = level;
    least = std::min(least, flow.remaining);
    for (const Hop hop : path(crossing.flow)) {
      Tank& crossed = tanks_[hop.link];
      crossed.left -= level;
      --crossed.open;
      if (crossed.changed) continue;
      crossed.changed = true;
      changed_.push_back(hop.link);
    }
  }
  return least;
}

}  // namespace orrery
