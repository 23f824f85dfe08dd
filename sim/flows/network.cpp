#include "sim/flows/network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/errors.hpp"

namespace orrery {
namespace {

constexpr double units_per_byte_per_second = 1 << 20;
constexpr Int128 picoseconds_per_second = 1'000'000'000'000;

std::uint64_t capacity_of(Bandwidth bandwidth) {
  ensure(bandwidth.count() >= 1.0 && bandwidth.count() < std::ldexp(1.0, 44),
         "a link carries from 1 byte/s to 17 TB/s");
  return static_cast<std::uint64_t>(bandwidth.count() * units_per_byte_per_second);
}

Bandwidth bandwidth_of(std::uint64_t capacity) {
  return Bandwidth{static_cast<double>(capacity) / units_per_byte_per_second};
}

Int128 divided_up(Int128 amount, std::uint64_t rate) {
  return (amount + rate - 1) / rate;
}

}  // namespace

LinkId Network::add_link(Bandwidth bandwidth, Time latency) {
  ensure(latency >= Time{}, "a link's latency is at least 0 ps");
  ensure(links_.size() < no_number, "too many links");
  FlowLink link;
  link.capacity = capacity_of(bandwidth);
  link.latency = latency;
  links_.push_back(std::move(link));
  return LinkId{static_cast<std::uint32_t>(links_.size() - 1)};
}

Bandwidth Network::bandwidth(LinkId link) const {
  return bandwidth_of(links_.at(index(link)).capacity);
}

FlowId Network::send(Bytes size, std::span<const LinkId> route, Engine::Handler done) {
  ensure(size >= Bytes{}, "a flow carries at least 0 bytes");
  Time latency{};
  for (std::size_t i = 0; i < route.size(); ++i) {
    ensure(index(route[i]) < links_.size(), "a route names a link that the network has not");
    ensure(std::find(route.begin(), route.begin() + static_cast<std::ptrdiff_t>(i), route[i]) ==
               route.begin() + static_cast<std::ptrdiff_t>(i),
           "a route crosses a link twice");
    latency += links_[index(route[i])].latency;
  }

  const std::uint32_t flow = new_flow(route.size());
  flows_[flow].remaining = Int128{size.count()} * (1 << 20) * picoseconds_per_second;
  for (std::size_t hop = 0; hop < route.size(); ++hop) {
    path(flow)[hop].link = static_cast<std::uint32_t>(route[hop]);
  }
  FlowMessage& message = messages_[flow];
  message.serial = ++sent_;
  message.size = size;
  if (done) {
    if (done_.size() <= flow) done_.resize(flow + std::size_t{1});
    done_[flow] = std::move(done);
  }
  if (latency > Time{} || size == Bytes{} || route.empty()) {
    engine_.signal(engine_.now() + latency, start_, flow);
  } else {
    join(flow);
  }
  return {flow, messages_[flow].serial};
}

Bandwidth Network::rate(FlowId flow) const {
  if (flow.index >= flows_.size() || messages_[flow.index].serial != flow.serial) return {};
  return bandwidth_of(flows_[flow.index].rate);
}

Bandwidth Network::load(LinkId link) const {
  std::uint64_t load = 0;
  for (const FlowCrossing crossing : links_.at(index(link)).flows)
    load += flows_[crossing.flow].rate;
  return bandwidth_of(load);
}

std::uint32_t Network::new_flow(std::size_t hops) {
  if (hops > stride_) widen(hops);
  std::uint32_t flow;
  if (free_flows_.empty()) {
    ensure(flows_.size() < no_number, "too many flows at once");
    flow = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
    messages_.emplace_back();
    hops_.resize(hops_.size() + stride_);
  } else {
    flow = free_flows_.back();
    free_flows_.pop_back();
  }
  flows_[flow].hops = static_cast<std::uint32_t>(hops);
  return flow;
}

void Network::expect(std::size_t flows) {
  flows_.reserve(flows);
  messages_.reserve(flows);
  hops_.reserve(flows * stride_);
  retired_flows_.reserve(flows);
}

void Network::widen(std::size_t hops) {
  const std::size_t wider = std::bit_ceil(hops);
  std::vector<FlowHop> moved(flows_.size() * wider);
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
    std::copy_n(hops_.data() + flow * stride_, stride_, moved.data() + flow * wider);
  }
  hops_ = std::move(moved);
  stride_ = wider;
}

void Network::start(Engine::Word word) {
  ++events_;
  const auto flow = static_cast<std::uint32_t>(word);
  if (flows_[flow].remaining == 0 || flows_[flow].hops == 0) {
    settle_at_instant_end();
    finish(flow);
  } else {
    join(flow);
  }
}

void Network::join(std::uint32_t flow) {
  const std::span<FlowHop> hops = path(flow);
  if (is_alone(flow) && run_alone(flow)) {
    for (std::uint32_t hop = 0; hop < hops.size(); ++hop) {
      hops[hop].place = 0;
      links_[hops[hop].link].flows.push_back({flow, hop});
    }
    return;
  }
  for (std::uint32_t hop = 0; hop < hops.size(); ++hop) {
    auto& neighbours = links_[hops[hop].link].flows;
    hops[hop].place = static_cast<std::uint32_t>(neighbours.size());
    neighbours.push_back({flow, hop});
    touch(hops[hop].link);
  }
  ++unsettled_;
  joined_ = true;
}

bool Network::is_alone(std::uint32_t flow) const {
  const FlowHop* const hops = hops_.data() + flow * stride_;
  return std::all_of(hops, hops + flows_[flow].hops,
                     [this](const FlowHop& hop) { return links_[hop.link].flows.empty(); });
}

/// Fast path for a flow that has all its links to itself, common in a ring: its rate is the
/// capacity of its slowest link, without a settlement. A flow that joins one of the links later,
/// even in this instant, touches it, and both flows are settled. Returns false if the flow would
/// end after the largest Time; the settlement then reports that.
bool Network::run_alone(std::uint32_t index) {
  FlowState& flow = flows_[index];
  std::uint64_t rate = std::numeric_limits<std::uint64_t>::max();
  for (const FlowHop hop : path(index)) rate = std::min(rate, links_[hop.link].capacity);
  const Int128 left = divided_up(flow.remaining, rate);
  if (left > std::numeric_limits<std::int64_t>::max() - engine_.now().count()) return false;
  flow.rate = rate;
  flow.component = new_component();
  FlowComponent& component = components_[flow.component];
  component.flows.assign(1, index);
  component.links.clear();
  for (const FlowHop hop : path(index)) component.links.push_back(hop.link);
  component.since = engine_.now();
  component.end = engine_.after(Time{static_cast<std::int64_t>(left)},
                                [this, number = flow.component] { end_next(number); });
  return true;
}

void Network::leave(std::uint32_t flow) {
  for (const FlowHop hop : path(flow)) {
    FlowLink& link = links_[hop.link];
    const FlowCrossing last = link.flows.back();
    link.flows[hop.place] = last;
    path(last.flow)[last.hop].place = hop.place;
    link.flows.pop_back();
    if (!link.flows.empty()) touch(hop.link);
  }
}

/// The flow's index is not reused until the instant is settled.
void Network::finish(std::uint32_t flow) {
  for (const FlowHop hop : path(flow)) links_[hop.link].carried += messages_[flow].size;
  messages_[flow].serial = 0;
  retired_flows_.push_back(flow);
  settle_at_instant_end();
  ++ended_;
  if (done_.size() <= flow) return;
  Engine::Handler done = std::move(done_[flow]);  // it may send, and so move done_
  if (done) done();
}

Bytes Network::memory() const {
  const auto held = [](const auto& all) { return all.capacity() * sizeof(all.front()); };
  std::size_t bytes = held(links_) + filling_.memory() + held(flows_) + held(messages_) +
                      held(hops_) + held(done_) + held(components_) + held(free_flows_) +
                      held(retired_flows_);
  for (const FlowLink& link : links_) bytes += held(link.flows);
  for (const FlowComponent& component : components_) {
    bytes += held(component.flows) + held(component.links);
  }
  return Bytes{static_cast<std::int64_t>(bytes)};
}

void Network::touch(std::uint32_t link) {
  if (links_[link].touched) return;
  links_[link].touched = true;
  touched_.push_back(link);
  settle_at_instant_end();
}

void Network::settle_at_instant_end() {
  if (settling_) return;
  settling_ = true;
  engine_.at_instant_end([this] { settle(); });
}

void Network::end_next(std::uint32_t index) {
  ++events_;
  FlowComponent& component = components_[index];
  const Int128 elapsed = (engine_.now() - component.since).count();
  component.since = engine_.now();
  ending_.clear();
  std::size_t left = 0;
  for (const std::uint32_t flow : component.flows) {
    flows_[flow].remaining -= flows_[flow].rate * elapsed;
    if (flows_[flow].remaining > 0) {
      component.flows[left++] = flow;
    } else {
      ending_.push_back(flow);
    }
  }
  component.flows.resize(left);
  ensure(!ending_.empty(), "a component's next end has come, but none of its flows has ended");
  dissolve(index);

  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    return messages_[a].serial < messages_[b].serial;
  };
  if (!std::ranges::is_sorted(ending_, before)) {
    std::ranges::sort(ending_, before);
  }
  for (const std::uint32_t flow : ending_) leave(flow);
  for (const std::uint32_t flow : ending_) finish(flow);
}

// Rates, once per instant, starting from the links that the instant touched: finds the current
// components (flows that started merge them, flows that ended split them), computes the rates of
// each and schedules its next flow end.

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

/// Counts the touched links of each component, for `reuse_component`. Skipped if a flow has
/// started, because links are then collected from scratch.
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

/// The flows of a component, none of which has a rate yet, for the filling.
struct Network::OpenFlows {
  Network& network;
  Int128 least = std::numeric_limits<Int128>::max();  // `remaining` of those that stop

  bool open(std::uint32_t flow) const { return network.flows_[flow].rate == 0; }
  void stop(std::uint32_t flow, std::uint64_t rate, std::uint32_t = 0) {
    network.flows_[flow].rate = rate;
    least = std::min(least, network.flows_[flow].remaining);
  }
  template <class Visit>
  void each_on(std::uint32_t link, Visit visit) const {
    for (const FlowCrossing crossing : network.links_[link].flows) visit(crossing.flow);
  }
  template <class Visit>
  void each_crossing(std::uint32_t flow, Visit visit) const {
    for (const FlowHop hop : network.path(flow)) visit(hop.link, 1);
  }
};

/// Sets the rates of a component's flows. Returns the time to the first flow end:
///   min over levels of ceil(least remaining of the flows at the level / level)
Time Network::fill(const std::vector<std::uint32_t>& links) {
  filling_.begin(links_.size());
  for (const std::uint32_t link : links) {
    filling_.add_link(link, links_[link].capacity, links_[link].flows.size());
  }
  Int128 first_end = std::numeric_limits<std::int64_t>::max() - engine_.now().count();
  bool ends = false;
  OpenFlows flows{*this};
  while (const std::uint64_t level = filling_.rise(flows)) {
    const Int128 least = std::exchange(flows.least, std::numeric_limits<Int128>::max());
    const Int128 end = divided_up(least, level);
    if (end > first_end) continue;
    first_end = end;
    ends = true;
  }
  ensure(ends, "a flow would last longer than 106 days, the longest time that can be simulated");
  return Time{static_cast<std::int64_t>(first_end)};
}

}  // namespace orrery
