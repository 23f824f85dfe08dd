#pragma once
// The flow classes that send now, and their rates: max-min fair among the links that would be
// overloaded if every class sent at its cap. After an instant only rates that can have changed are
// solved again: those connected to the change through overloaded links and not below the least rate
// that changed (`base_`). A link that fills at a lower rate holds nothing that ended or started:
// what ended would have been limited to that lower rate, and what started gets at least its equal
// part of a link.
//
// "Link" stands for each link of a LinkClass here.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "models/evaluation/traffic/prefix.hpp"
#include "models/evaluation/traffic/traffic.hpp"
#include "sim/flows/max_min.hpp"

namespace orrery::models::traffic {

/// How much each flow class loses to which others by sharing links. A class that is slower than its
/// cap is limited by one link; at every moment it loses cap - rate, to the other classes on that
/// link in proportion to their shares of it. Integers, so that the ledger balances: carried and
/// lost amounts add up to what the same time would have carried at the cap.
class LossLedger {
 public:
  using Amount = Int128;  // 2^-12 byte x ps

  explicit LossLedger(std::size_t flow_classes) : entries_(flow_classes) {}

  /// Continues from `before`, in which `stood_for[id]` is the class that stood for class `id` here.
  void resume(const LossLedger& before, const std::vector<std::uint32_t>& stood_for);

  struct Other {
    std::uint32_t flow_class = 0;
    WireRate share = 0;  // of the link: flows x rate
  };

  /// From `now` on a class loses `rate`, to `others`; to none where nothing limits it.
  void lose(std::uint32_t flow_class, std::int64_t now, WireRate rate, std::vector<Other> others);
  /// The class has sent all. Returns the amount that it has lost meanwhile.
  Amount end(std::uint32_t flow_class, std::int64_t now);

  /// To which other classes it lost, as share x time of each.
  const std::map<std::uint32_t, Amount>& to(std::uint32_t flow_class) const {
    return entries_[flow_class].to;
  }

 private:
  struct Losses {
    std::int64_t since = 0;
    WireRate rate = 0;
    Amount lost = 0;  // since the class began to send
    std::vector<Other> others;
    std::map<std::uint32_t, Amount> to;
  };
  void settle(Losses& entry, std::int64_t now);

  std::vector<Losses> entries_;
};

class LinkShares {
 public:
  /// Called with a flow class's next end; a later call, with a larger serial number, replaces it.
  using Schedule = std::function<void(std::uint32_t id, std::uint32_t serial, std::int64_t end)>;

  LinkShares(const Traffic& traffic, Schedule schedule);

  /// Continues from `before`, which is settled and whose classes stand for those here. Nothing has
  /// started here yet.
  void resume(const LinkShares& before, const PrefixTraffic& prefix, std::int64_t now);

  /// A flow class begins to send: for `fluid`, at its wire rate.
  /// Errors  it is sending: ContractError
  void start(std::uint32_t id, std::int64_t now, Time fluid);
  /// Is it the class's end that was scheduled last?
  bool due(std::uint32_t id, std::uint32_t serial) const {
    return classes_[id].active && classes_[id].serial == serial;
  }
  /// A flow class has sent all.
  void end(std::uint32_t id, std::int64_t now);
  /// Sets the capacity of a link.
  void change(std::uint32_t link, WireRate capacity);
  /// Ends an instant: solves the rates that can have changed.
  void settle(std::int64_t now);

  std::uint64_t solves() const { return solves_; }
  /// How long each link was overloaded until now.
  std::vector<Time> overloaded(std::int64_t now) const;
  /// Time for which a flow class has sent beyond what it would have taken at its cap.
  Time lost(std::uint32_t id) const { return classes_[id].lost; }
  const LossLedger& losses() const { return losses_; }

 private:
  using Amount = Int128;  // 2^-12 byte x ps

  /// A flow class while it sends.
  struct Sending {
    bool active = false, fresh = false, affected = false, open = false;
    WireRate rate = 0, next = 0;
    Amount remaining = 0, amount = 0;
    std::uint32_t limit = 0;  // the link that limits it, where it is slower than its cap
    std::int64_t since = 0, started = 0, at_cap = 0;
    std::uint32_t serial = 0;
    Time lost{};
  };
  struct LinkCrossing {
    std::uint32_t flow_class = 0, flows = 0;
  };
  struct SharedLink {
    WireRate capacity = 0;
    Amount load = 0;                   // demand of its active classes at their caps
    std::vector<LinkCrossing> active;  // flow classes that send over it
    bool touched = false, was_over = false, affected = false;
    std::int64_t over_since = 0, over = 0;

    bool overloaded() const { return load > capacity; }
    std::int64_t overloaded_until(std::int64_t now) const {
      return over + (overloaded() ? now - over_since : 0);
    }
  };

  void touch(std::uint32_t link);
  void lower_base(WireRate rate) { base_ = std::min(base_, rate); }
  void find_base();
  void find_affected();
  void affect(std::uint32_t link);
  struct AffectedFlows;
  void fill();
  void note_loss(std::uint32_t id, std::int64_t now);
  WireRate cap(std::uint32_t id) const { return traffic_.flow_classes[id].cap; }
  void schedule_end(std::uint32_t id);
  void set_rate(std::uint32_t id, WireRate rate, std::int64_t now);
  void clear(std::int64_t now);

  const Traffic& traffic_;
  Schedule schedule_;
  std::vector<Sending> classes_;
  std::vector<SharedLink> links_;
  std::vector<std::uint32_t> touched_, fresh_;            // links and classes of this instant
  std::vector<std::uint32_t> affected_, affected_links_;  // classes and links to solve again
  MaxMinFilling filling_{ShareTies::exact};
  LossLedger losses_;
  WireRate base_ = 0;
  std::uint64_t solves_ = 0;
};

}  // namespace orrery::models::traffic
