#include "models/evaluation/traffic/shares.hpp"

#include <algorithm>
#include <limits>

#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

constexpr WireRate any_rate = std::numeric_limits<WireRate>::max();

std::int64_t rounded_up(Int128 amount, WireRate rate) {
  return static_cast<std::int64_t>((amount + rate - 1) / rate);
}

}  // namespace

WireShares::WireShares(const Traffic& traffic, Schedule schedule)
    : traffic_{traffic},
      schedule_{std::move(schedule)},
      losses_{traffic.templates.size()},
      base_{any_rate} {
  items_.resize(traffic.templates.size());
  rows_.resize(traffic.rows.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].capacity = traffic.rows[row].capacity;
  }
}

void WireShares::go_on(const WireShares& before, const EarlyTraffic& early, std::int64_t now) {
  for (std::size_t id = 0; id < items_.size(); ++id) {
    items_[id] = before.items_[early.templates[id]];
    if (!items_[id].active) continue;
    for (const RowUse& use : traffic_.templates[id].rows) {
      rows_[use.row].load += Amount{use.flows} * traffic_.templates[id].full;
      rows_[use.row].active.push_back({static_cast<std::uint32_t>(id), use.flows});
    }
    schedule_end(static_cast<std::uint32_t>(id));
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (const auto& [at, capacity] : traffic_.rows[row].changes) {
      if (at.count() <= now) rows_[row].capacity = capacity;
    }
    if (early.rows[row]) rows_[row].over = before.rows_[*early.rows[row]].overloaded_until(now);
    rows_[row].over_since = now;
  }
  losses_.go_on(before.losses_, early.templates);
  solves_ = before.solves_;
}

void WireShares::touch(std::uint32_t id) {
  SharedRow& row = rows_[id];
  if (row.touched) return;
  row.touched = true;
  row.was_over = row.overloaded();
  touched_.push_back(id);
}

void WireShares::start(std::uint32_t id, std::int64_t now, Time fluid) {
  Item& item = items_[id];
  ensure(!item.active, "two instances of one template at once");
  const TrafficTemplate& of = traffic_.templates[id];
  item.active = item.fresh = true;
  item.rate = 0;
  item.amount = item.remaining = Amount{fluid.count()} * of.wire;
  item.since = item.started = now;
  item.alone = rounded_up(item.remaining, of.full);
  fresh_.push_back(id);
  for (const RowUse& use : of.rows) {
    touch(use.row);
    rows_[use.row].load += Amount{use.flows} * of.full;
    rows_[use.row].active.push_back({id, use.flows});
  }
}

Time WireShares::end(std::uint32_t id, std::int64_t now) {
  Item& item = items_[id];
  const Amount rest = item.remaining - Amount{now - item.since} * item.rate;
  ensure(rest <= 0 && rest > -Amount{item.rate}, "traffic ended before or after its last byte");
  const TrafficTemplate& of = traffic_.templates[id];
  for (const RowUse& use : of.rows) {
    touch(use.row);
    SharedRow& row = rows_[use.row];
    if (row.was_over) lower_base(item.rate);
    row.load -= Amount{use.flows} * of.full;
    const auto at = std::ranges::find(row.active, id, &RowUse::row);
    *at = row.active.back();
    row.active.pop_back();
  }
  item.active = false;
  const Amount alone = Amount{now - item.started} * of.full;
  ensure(losses_.end(id, now) == alone - (item.amount - rest), "what traffic lost adds up");
  const Time lost{now - item.started - item.alone};
  item.lost += lost;
  return lost;
}

/// Rare, so everything connected to the row is solved again.
void WireShares::change(std::uint32_t id, WireRate capacity) {
  touch(id);
  rows_[id].capacity = capacity;
  lower_base(0);
}

void WireShares::settle(std::int64_t now) {
  if (touched_.empty() && fresh_.empty()) return;
  find_base();
  choose();
  for (const std::uint32_t id : fresh_) {
    if (items_[id].active && !items_[id].chosen) set_rate(id, traffic_.templates[id].full, now);
  }
  if (!chosen_.empty()) {
    ++solves_;
    fill();
    for (const std::uint32_t id : chosen_) {
      if (items_[id].fresh || items_[id].next != items_[id].rate) {
        set_rate(id, items_[id].next, now);
      }
      note_loss(id, now);
    }
  }
  clear(now);
}

/// Lowers the base for new traffic: its share of an overloaded row is never below its equal part.
void WireShares::find_base() {
  for (const std::uint32_t id : fresh_) {
    for (const RowUse& crossed : traffic_.templates[id].rows) {
      const SharedRow& row = rows_[crossed.row];
      if (!row.overloaded()) continue;
      std::uint64_t flows = 0;
      for (const RowUse& use : row.active) flows += use.flows;
      lower_base(row.capacity / flows);
    }
  }
}

/// Chooses the templates and rows that are connected to a change through overloaded rows.
void WireShares::choose() {
  for (const std::uint32_t id : touched_) {
    if (rows_[id].was_over || rows_[id].overloaded()) choose_row(id);
  }
  for (std::size_t next = 0; next < chosen_rows_.size(); ++next) {
    for (const RowUse& use : rows_[chosen_rows_[next]].active) {
      Item& item = items_[use.row];
      if (item.chosen || (!item.fresh && item.rate < base_)) continue;
      item.chosen = true;
      chosen_.push_back(use.row);
      for (const RowUse& other : traffic_.templates[use.row].rows) {
        if (rows_[other.row].overloaded()) choose_row(other.row);
      }
    }
  }
}

void WireShares::choose_row(std::uint32_t id) {
  if (rows_[id].chosen) return;
  rows_[id].chosen = true;
  chosen_rows_.push_back(id);
}

/// The chosen templates, for the filling.
struct WireShares::OpenTemplates {
  WireShares& shares;

  bool open(std::uint32_t id) const { return shares.items_[id].open; }
  void stop(std::uint32_t id, WireRate rate) {
    shares.items_[id].open = false;
    shares.items_[id].next = rate;
  }
  void stop(std::uint32_t id, WireRate rate, std::uint32_t row) {
    stop(id, rate);
    shares.items_[id].limit = row;
  }
  template <class Visit>
  void each_on(std::uint32_t row, Visit visit) const {
    for (const RowUse& use : shares.rows_[row].active) visit(use.row);
  }
  template <class Visit>
  void each_crossing(std::uint32_t id, Visit visit) const {
    for (const RowUse& use : shares.traffic_.templates[id].rows) visit(use.row, use.flows);
  }
};

/// Finds the rates of the chosen templates; the others keep theirs.
void WireShares::fill() {
  filling_.begin(rows_.size());
  for (const std::uint32_t id : chosen_rows_) {
    const SharedRow& row = rows_[id];
    if (!row.overloaded()) continue;  // it cannot be filled
    WireRate left = row.capacity;
    std::uint64_t flows = 0;
    for (const RowUse& use : row.active) {
      if (items_[use.row].chosen) {
        flows += use.flows;
      } else {
        left -= use.flows * items_[use.row].rate;
      }
    }
    if (flows > 0) filling_.add_link(id, left, flows);
  }
  for (const std::uint32_t id : chosen_) {
    items_[id].open = true;
    filling_.add_cap(id, full(id));
  }
  OpenTemplates templates{*this};
  while (filling_.rise(templates) > 0) {
  }
}

void WireShares::set_rate(std::uint32_t id, WireRate rate, std::int64_t now) {
  ensure(rate > 0, "traffic has a share of every link");
  Item& item = items_[id];
  item.remaining -= Amount{now - item.since} * item.rate;
  item.since = now;
  item.rate = rate;
  item.fresh = false;
  ++item.serial;
  schedule_end(id);
}

void WireShares::schedule_end(std::uint32_t id) {
  const Item& item = items_[id];
  const std::int64_t left = rounded_up(std::max<Amount>(item.remaining, 0), item.rate);
  schedule_(id, item.serial, item.since + left);
}

/// Notes a template's loss: the row that limits it, or the shares of others there, may have
/// changed.
void WireShares::note_loss(std::uint32_t id, std::int64_t now) {
  const Item& item = items_[id];
  std::vector<LossLedger::Other> others;
  if (item.rate < full(id)) {
    for (const RowUse& use : rows_[item.limit].active) {
      // The rates of all are known: what was not chosen keeps its own.
      const Item& other = items_[use.row];
      const WireRate rate = other.chosen ? other.next : other.rate;
      if (use.row != id) others.push_back({use.row, use.flows * rate});
    }
  }
  losses_.lose(id, now, full(id) - item.rate, std::move(others));
}

void WireShares::clear(std::int64_t now) {
  for (const std::uint32_t id : touched_) {
    SharedRow& row = rows_[id];
    row.touched = false;
    if (row.was_over && !row.overloaded()) row.over += now - row.over_since;
    if (!row.was_over && row.overloaded()) row.over_since = now;
  }
  for (const std::uint32_t id : chosen_rows_) rows_[id].chosen = false;
  for (const std::uint32_t id : chosen_) items_[id].chosen = false;
  touched_.clear();
  fresh_.clear();
  chosen_.clear();
  chosen_rows_.clear();
  base_ = any_rate;
}

std::vector<Time> WireShares::overloaded(std::int64_t now) const {
  std::vector<Time> times;
  for (const SharedRow& row : rows_) {
    times.push_back(Time{row.overloaded_until(now)});
  }
  return times;
}

}  // namespace orrery::models::traffic
