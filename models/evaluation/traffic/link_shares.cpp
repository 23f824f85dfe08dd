#include "models/evaluation/traffic/link_shares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

constexpr WireRate any_rate = std::numeric_limits<WireRate>::max();

std::int64_t rounded_up(Int128 amount, WireRate rate) {
  return static_cast<std::int64_t>((amount + rate - 1) / rate);
}

}  // namespace

void LossLedger::settle(Losses& entry, std::int64_t now) {
  const std::int64_t elapsed = now - std::exchange(entry.since, now);
  if (elapsed == 0 || entry.rate == 0) return;
  entry.lost += Amount{elapsed} * entry.rate;
  for (const Other& each : entry.others) entry.to[each.flow_class] += Amount{elapsed} * each.share;
}

void LossLedger::lose(std::uint32_t flow_class, std::int64_t now, WireRate rate,
                      std::vector<Other> others) {
  Losses& entry = entries_[flow_class];
  settle(entry, now);
  entry.rate = rate;
  entry.others = std::move(others);
}

void LossLedger::resume(const LossLedger& before, const std::vector<std::uint32_t>& stood_for) {
  std::vector<std::uint32_t> first(before.entries_.size(), 0);
  for (auto id = static_cast<std::uint32_t>(stood_for.size()); id-- > 0;) first[stood_for[id]] = id;
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    Losses& entry = entries_[id] = before.entries_[stood_for[id]];
    for (Other& each : entry.others) each.flow_class = first[each.flow_class];
    std::map<std::uint32_t, Amount> to;
    for (const auto& [other, share] : entry.to) to[first[other]] += share;
    entry.to = std::move(to);
  }
}

LossLedger::Amount LossLedger::end(std::uint32_t flow_class, std::int64_t now) {
  Losses& entry = entries_[flow_class];
  settle(entry, now);
  entry.rate = 0;
  return std::exchange(entry.lost, 0);
}

LinkShares::LinkShares(const Traffic& traffic, Schedule schedule)
    : traffic_{traffic},
      schedule_{std::move(schedule)},
      classes_(traffic.flow_classes.size()),
      links_(traffic.link_classes.size()),
      losses_{traffic.flow_classes.size()},
      base_{any_rate} {
  for (std::size_t link = 0; link < links_.size(); ++link) {
    links_[link].capacity = traffic.link_classes[link].capacity;
  }
}

void LinkShares::resume(const LinkShares& before, const PrefixTraffic& prefix, std::int64_t now) {
  for (std::uint32_t id = 0; id < classes_.size(); ++id) {
    classes_[id] = before.classes_[prefix.flow_classes[id]];
    if (!classes_[id].active) continue;
    for (const LinkFlows& crossed : traffic_.flow_classes[id].links) {
      links_[crossed.link].load += Amount{crossed.flows} * cap(id);
      links_[crossed.link].active.push_back({id, crossed.flows});
    }
    schedule_end(id);
  }
  for (std::size_t id = 0; id < links_.size(); ++id) {
    for (const auto& [at, capacity] : traffic_.link_classes[id].changes) {
      if (at.count() <= now) links_[id].capacity = capacity;
    }
    const auto stood = prefix.link_classes[id];
    if (stood) links_[id].over = before.links_[*stood].overloaded_until(now);
    links_[id].over_since = now;
  }
  losses_.resume(before.losses_, prefix.flow_classes);
  solves_ = before.solves_;
}

void LinkShares::touch(std::uint32_t id) {
  SharedLink& link = links_[id];
  if (link.touched) return;
  link.touched = true;
  link.was_over = link.overloaded();
  touched_.push_back(id);
}

void LinkShares::start(std::uint32_t id, std::int64_t now, Time fluid) {
  Sending& sending = classes_[id];
  ensure(!sending.active, "a flow class begins to send while it is sending");
  const FlowClass& flows = traffic_.flow_classes[id];
  sending.active = sending.fresh = true;
  sending.rate = 0;
  sending.amount = sending.remaining = Amount{fluid.count()} * flows.wire;
  sending.since = sending.started = now;
  sending.at_cap = rounded_up(sending.remaining, flows.cap);
  fresh_.push_back(id);
  for (const LinkFlows& crossed : flows.links) {
    touch(crossed.link);
    links_[crossed.link].load += Amount{crossed.flows} * flows.cap;
    links_[crossed.link].active.push_back({id, crossed.flows});
  }
}

void LinkShares::end(std::uint32_t id, std::int64_t now) {
  Sending& sending = classes_[id];
  const Amount rest = sending.remaining - Amount{now - sending.since} * sending.rate;
  ensure(rest <= 0 && rest > -Amount{sending.rate}, "traffic ended before or after its last byte");
  const FlowClass& flows = traffic_.flow_classes[id];
  for (const LinkFlows& crossed : flows.links) {
    touch(crossed.link);
    SharedLink& link = links_[crossed.link];
    if (link.was_over) lower_base(sending.rate);
    link.load -= Amount{crossed.flows} * flows.cap;
    const auto at = std::ranges::find(link.active, id, &LinkCrossing::flow_class);
    *at = link.active.back();
    link.active.pop_back();
  }
  sending.active = false;
  const Amount at_cap = Amount{now - sending.started} * flows.cap;
  ensure(losses_.end(id, now) == at_cap - (sending.amount - rest), "what traffic lost adds up");
  sending.lost += Time{now - sending.started - sending.at_cap};
}

/// Rare, so everything connected to the link is solved again.
void LinkShares::change(std::uint32_t id, WireRate capacity) {
  touch(id);
  links_[id].capacity = capacity;
  lower_base(0);
}

void LinkShares::settle(std::int64_t now) {
  if (touched_.empty() && fresh_.empty()) return;
  find_base();
  find_affected();
  for (const std::uint32_t id : fresh_) {
    if (classes_[id].active && !classes_[id].affected) set_rate(id, cap(id), now);
  }
  if (!affected_.empty()) {
    ++solves_;
    fill();
    for (const std::uint32_t id : affected_) {
      const Sending& sending = classes_[id];
      if (sending.fresh || sending.next != sending.rate) set_rate(id, sending.next, now);
      note_loss(id, now);
    }
  }
  clear(now);
}

/// Lowers the base for what has started: its share of an overloaded link is never below its equal
/// part.
void LinkShares::find_base() {
  for (const std::uint32_t id : fresh_) {
    for (const LinkFlows& crossed : traffic_.flow_classes[id].links) {
      const SharedLink& link = links_[crossed.link];
      if (!link.overloaded()) continue;
      std::uint64_t flows = 0;
      for (const LinkCrossing& each : link.active) flows += each.flows;
      lower_base(link.capacity / flows);
    }
  }
}

/// Finds the flow classes and links that are connected to a change through overloaded links.
void LinkShares::find_affected() {
  for (const std::uint32_t id : touched_) {
    if (links_[id].was_over || links_[id].overloaded()) affect(id);
  }
  for (std::size_t next = 0; next < affected_links_.size(); ++next) {
    for (const LinkCrossing& each : links_[affected_links_[next]].active) {
      Sending& sending = classes_[each.flow_class];
      if (sending.affected || (!sending.fresh && sending.rate < base_)) continue;
      sending.affected = true;
      affected_.push_back(each.flow_class);
      for (const LinkFlows& other : traffic_.flow_classes[each.flow_class].links) {
        if (links_[other.link].overloaded()) affect(other.link);
      }
    }
  }
}

void LinkShares::affect(std::uint32_t link) {
  if (links_[link].affected) return;
  links_[link].affected = true;
  affected_links_.push_back(link);
}

/// The affected flow classes, for the filling.
struct LinkShares::AffectedFlows {
  LinkShares& shares;

  bool open(std::uint32_t id) const { return shares.classes_[id].open; }
  void stop(std::uint32_t id, WireRate rate) {
    shares.classes_[id].open = false;
    shares.classes_[id].next = rate;
  }
  void stop(std::uint32_t id, WireRate rate, std::uint32_t link) {
    stop(id, rate);
    shares.classes_[id].limit = link;
  }
  template <class Visit>
  void each_on(std::uint32_t link, Visit visit) const {
    for (const LinkCrossing& each : shares.links_[link].active) visit(each.flow_class);
  }
  template <class Visit>
  void each_crossing(std::uint32_t id, Visit visit) const {
    for (const LinkFlows& each : shares.traffic_.flow_classes[id].links) {
      visit(each.link, each.flows);
    }
  }
};

/// Finds the rates of the affected flow classes; the others keep theirs.
void LinkShares::fill() {
  filling_.begin(links_.size());
  for (const std::uint32_t id : affected_links_) {
    const SharedLink& link = links_[id];
    if (!link.overloaded()) continue;  // it cannot be filled
    WireRate left = link.capacity;
    std::uint64_t flows = 0;
    for (const LinkCrossing& each : link.active) {
      const Sending& sending = classes_[each.flow_class];
      sending.affected ? flows += each.flows : left -= each.flows * sending.rate;
    }
    if (flows > 0) filling_.add_link(id, left, flows);
  }
  for (const std::uint32_t id : affected_) {
    classes_[id].open = true;
    filling_.add_cap(id, cap(id));
  }
  AffectedFlows flows{*this};
  while (filling_.rise(flows) > 0) {
  }
}

void LinkShares::set_rate(std::uint32_t id, WireRate rate, std::int64_t now) {
  ensure(rate > 0, "traffic has a share of every link");
  Sending& sending = classes_[id];
  sending.remaining -= Amount{now - sending.since} * sending.rate;
  sending.since = now;
  sending.rate = rate;
  sending.fresh = false;
  ++sending.serial;
  schedule_end(id);
}

void LinkShares::schedule_end(std::uint32_t id) {
  const Sending& sending = classes_[id];
  const std::int64_t left = rounded_up(std::max<Amount>(sending.remaining, 0), sending.rate);
  schedule_(id, sending.serial, sending.since + left);
}

/// Notes a flow class's loss: the link that limits it, or the shares of others there, may have
/// changed.
void LinkShares::note_loss(std::uint32_t id, std::int64_t now) {
  const Sending& sending = classes_[id];
  std::vector<LossLedger::Other> others;
  if (sending.rate < cap(id)) {
    for (const LinkCrossing& each : links_[sending.limit].active) {
      // The rates of all are known: what is not affected keeps its own.
      const Sending& other = classes_[each.flow_class];
      const WireRate rate = other.affected ? other.next : other.rate;
      if (each.flow_class != id) others.push_back({each.flow_class, each.flows * rate});
    }
  }
  losses_.lose(id, now, cap(id) - sending.rate, std::move(others));
}

void LinkShares::clear(std::int64_t now) {
  for (const std::uint32_t id : touched_) {
    SharedLink& link = links_[id];
    link.touched = false;
    if (link.was_over && !link.overloaded()) link.over += now - link.over_since;
    if (!link.was_over && link.overloaded()) link.over_since = now;
  }
  for (const std::uint32_t id : affected_links_) links_[id].affected = false;
  for (const std::uint32_t id : affected_) classes_[id].affected = false;
  touched_.clear();
  fresh_.clear();
  affected_.clear();
  affected_links_.clear();
  base_ = any_rate;
}

std::vector<Time> LinkShares::overloaded(std::int64_t now) const {
  std::vector<Time> times;
  for (const SharedLink& link : links_) {
    times.push_back(Time{link.overloaded_until(now)});
  }
  return times;
}

}  // namespace orrery::models::traffic
