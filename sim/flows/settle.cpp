// Computes flow rates, once per instant, starting from the links that the instant touched: finds
// the current components (flows that started merge them, flows that ended split them), computes the
// rates of each and schedules its next flow end.

#include <algorithm>
#include <functional>
#include <limits>

#include "sim/errors.hpp"
#include "sim/flows/network.hpp"

namespace orrery {
namespace {

/// Links whose shares differ by less than 2^-32 of the share saturate at the same level: remainders
/// of integer division must not order links that are equal.
constexpr int tie_bits = 32;

Int128 divided_up(Int128 amount, std::uint64_t rate) {
  return (amount + rate - 1) / rate;
}

}  // namespace

void Network::settle() {
  settling_ = false;
  ++settlement_;
  count_touched();
  std::uint64_t settled = 0;
  for (const std::uint32_t link : touched_) {
    if (links_[link].settled == settlement_ || links_[link].flows.empty()) continue;
    const std::uint32_t index = new_component();
    if (!reuse_component(link, index)) collect(link, index);
    FlowComponent& component = components_[index];
    settled += component.flows.size();
    component.since = engine_.now();
    component.end = engine_.after(fill(component.links), [this, index] { end_next(index); });
  }
  for (const std::uint32_t link : touched_) links_[link].touched = false;
  touched_.clear();
  ensure(settled == unsettled_, "flows were lost or counted twice when links were settled");
  unsettled_ = 0;
  joined_ = false;

  for (const std::uint32_t flow : retired_flows_) {
    flows_[flow].rate = 0;
    flows_[flow].component = no_number;
    free_flows_.push_back(flow);
  }
  retired_flows_.clear();
  for (const std::uint32_t component : dissolved_) {
    components_[component].flows.clear();
    components_[component].touched = 0;
    free_components_.push_back(component);
  }
  dissolved_.clear();
}

/// Counts the touched links of each component, for `inherit`. Skipped if a flow has started,
/// because links are then collected from scratch.
void Network::count_touched() {
  if (joined_) return;
  for (const std::uint32_t link : touched_) {
    if (links_[link].flows.empty()) continue;
    ++components_[flows_[links_[link].flows.front().flow].component].touched;
  }
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

/// Cancels the component's event; its flows must be assigned again, to one component or several.
void Network::dissolve(std::uint32_t component) {
  engine_.cancel(components_[component].end);
  components_[component].dissolved = true;
  unsettled_ += components_[component].flows.size();
  dissolved_.push_back(component);
}

/// Fast path of the common case: flows have ended, none has started, and the remaining links are
/// still connected. The new component `heir` then takes over flows and links without a search.
bool Network::reuse_component(std::uint32_t first, std::uint32_t heir) {
  const std::uint32_t old = flows_[links_[first].flows.front().flow].component;
  if (joined_ || old == no_number || !components_[old].dissolved) return false;
  if (!still_connected(first, components_[old].touched)) return false;
  FlowComponent& component = components_[heir];
  component.flows.swap(components_[old].flows);
  component.links.swap(components_[old].links);
  for (const std::uint32_t flow : component.flows) {
    flows_[flow].component = heir;
    flows_[flow].rate = 0;
  }
  std::erase_if(component.links, [this](std::uint32_t link) { return links_[link].flows.empty(); });
  for (const std::uint32_t link : component.links) links_[link].settled = settlement_;
  return true;
}

/// True if flows still connect all the links that ended flows were on. The whole component is then
/// still connected, because an ended flow connected only links that it was on.
bool Network::still_connected(std::uint32_t first, std::size_t wanted) {
  reached_.assign(1, first);
  links_[first].settled = settlement_;
  std::size_t found = 1;
  for (std::size_t next = 0; next < reached_.size() && found < wanted; ++next) {
    for (const FlowCrossing crossing : links_[reached_[next]].flows) {
      const std::size_t before = reached_.size();
      spread(crossing.flow);
      for (std::size_t i = before; i < reached_.size(); ++i) found += links_[reached_[i]].touched;
      if (found == wanted) break;
    }
  }
  for (const std::uint32_t link : reached_) links_[link].settled = 0;
  return found == wanted;
}

/// Collects into the component all links that flows connect with `first`, and those flows.
void Network::collect(std::uint32_t first, std::uint32_t component) {
  reached_.assign(1, first);
  links_[first].settled = settlement_;
  for (std::size_t next = 0; next < reached_.size(); ++next) {
    for (const FlowCrossing crossing : links_[reached_[next]].flows) {
      if (flows_[crossing.flow].component == component) continue;
      adopt(crossing.flow, component);
      spread(crossing.flow);
    }
  }
  components_[component].links = reached_;
}

void Network::adopt(std::uint32_t index, std::uint32_t component) {
  FlowState& flow = flows_[index];
  if (flow.component != no_number) {
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
  for (const FlowHop hop : path(flow)) {
    if (links_[hop.link].settled == settlement_) continue;
    links_[hop.link].settled = settlement_;
    reached_.push_back(hop.link);
  }
}

/// Progressive filling: saturates the links with the smallest share, fixes their flows at that
/// rate, and shares the remaining capacity among the other flows. Returns the time to the first
/// flow end:
///   min over levels of ceil(least remaining of the flows at the level / level)
Time Network::fill(const std::vector<std::uint32_t>& links) {
  shares_.clear();
  for (const std::uint32_t link : links) {
    const auto open = static_cast<std::uint32_t>(links_[link].flows.size());
    fill_states_[link] = {.left = links_[link].capacity, .open = open};
    shares_.push_back({.least = links_[link].capacity / open, .link = link, .open = open});
  }
  std::make_heap(shares_.begin(), shares_.end(), std::greater<>{});
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
  ensure(ends, "a flow would last longer than 106 days, the longest time that can be simulated");
  return Time{static_cast<std::int64_t>(first_end)};
}

/// Puts the links with the smallest share into `full_`. Returns that share, 0 if no flow is open.
std::uint64_t Network::fill_lowest() {
  full_.clear();
  const std::uint64_t lowest = lowest_share();
  if (shares_.empty()) return 0;
  ensure(lowest > 0, "a link has more flows than it has rate to share");
  const std::uint64_t tied = lowest + (lowest >> tie_bits);
  for (std::uint64_t next = lowest; !shares_.empty() && next <= tied; next = lowest_share()) {
    std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
    full_.push_back(shares_.back().link);
    shares_.pop_back();
  }
  return lowest;
}

/// The smallest share of all links with open flows, 0 if there are none; that link is then at the
/// heap's front. Outdated entries are updated on the way: shares only grow during filling.
std::uint64_t Network::lowest_share() {
  while (!shares_.empty()) {
    LinkShare& first = shares_.front();
    const FillState& filling = fill_states_[first.link];
    if (filling.open == first.open) return first.least;
    if (filling.open > 0) {
      first = {.least = filling.left / filling.open, .link = first.link, .open = filling.open};
      sink_first();
    } else {
      std::pop_heap(shares_.begin(), shares_.end(), std::greater<>{});
      shares_.pop_back();
    }
  }
  return 0;
}

/// Sifts down the heap's first entry, whose share has grown.
void Network::sink_first() {
  const LinkShare sunk = shares_.front();
  std::size_t at = 0;
  for (std::size_t child = 1; child < shares_.size(); child = 2 * at + 1) {
    if (child + 1 < shares_.size() && shares_[child] > shares_[child + 1]) ++child;
    if (!(sunk > shares_[child])) break;
    shares_[at] = shares_[child];
    at = child;
  }
  shares_[at] = sunk;
}

/// Fixes the open flows of a link at the rate `level`; returns the smallest of their `remaining`.
Int128 Network::freeze(std::uint32_t link, std::uint64_t level) {
  Int128 least = std::numeric_limits<Int128>::max();
  for (const FlowCrossing crossing : links_[link].flows) {
    FlowState& flow = flows_[crossing.flow];
    if (flow.rate != 0) continue;
    flow.rate = level;
    least = std::min(least, flow.remaining);
    for (const FlowHop hop : path(crossing.flow)) {
      FillState& crossed = fill_states_[hop.link];
      crossed.left -= level;
      --crossed.open;
    }
  }
  return least;
}

}  // namespace orrery
