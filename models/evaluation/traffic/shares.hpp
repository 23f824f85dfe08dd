#pragma once
// Traffic that is under way, and the rate of each while it lasts: max-min fair among the rows that
// are overloaded at `full`. After an instant only what can have changed is solved again: what hangs
// together by overloaded rows and is not slower than the least rate that changed. A row that fills
// below that rate holds nothing that came or went: what left would have stopped there, and for what
// came the share of a row never falls below its equal part.

#include <cstdint>
#include <functional>
#include <vector>

#include "models/evaluation/traffic/early.hpp"
#include "models/evaluation/traffic/losses.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

class WireShares {
 public:
  /// A template's next end, under its present serial number.
  using Schedule = std::function<void(std::uint32_t id, std::uint32_t serial, std::int64_t end)>;

  WireShares(const Traffic& traffic, Schedule schedule);

  /// Goes on where `before`, settled, stands for it; nothing of this has begun.
  void go_on(const WireShares& before, const EarlyTraffic& early, std::int64_t now);

  /// Errors  an instance of the template is under way: ContractError
  void start(std::uint32_t id, std::int64_t now, Time fluid);
  /// Is it the end that was scheduled last?
  bool due(std::uint32_t id, std::uint32_t serial) const {
    return items_[id].active && items_[id].serial == serial;
  }
  /// How much longer than alone its instance was fluid.
  Time end(std::uint32_t id, std::int64_t now);
  void change(std::uint32_t row, WireRate capacity);
  /// The instant is over: solves what has changed.
  void settle(std::int64_t now);

  std::uint64_t solves() const { return solves_; }
  /// How long each row was overloaded until now.
  std::vector<Time> overloaded(std::int64_t now) const;
  /// Time of a template's instances beyond that alone.
  Time lost(std::uint32_t id) const { return items_[id].lost; }
  const LossLedger& losses() const { return losses_; }

 private:
  using Amount = Int128;  // 2^-12 byte x ps

  struct Item {
    bool active = false, fresh = false, chosen = false, open = false;
    WireRate rate = 0, next = 0;
    Amount remaining = 0, amount = 0;
    std::uint32_t limit = 0;  // row at which it stopped, where it is slower than alone
    std::int64_t since = 0, started = 0, alone = 0;
    std::uint32_t serial = 0;
    Time lost{};
  };
  struct SharedRow {
    WireRate capacity = 0, left = 0;
    Amount load = 0;             // at full
    std::vector<RowUse> active;  // templates (as `row`) and their flows
    std::uint64_t open = 0;
    bool touched = false, was_over = false, chosen = false;
    std::int64_t over_since = 0, over = 0;

    bool overloaded() const { return load > capacity; }
    std::int64_t overloaded_until(std::int64_t now) const {
      return over + (overloaded() ? now - over_since : 0);
    }
  };

  void touch(std::uint32_t row);
  void lower_base(WireRate rate) { base_ = std::min(base_, rate); }
  void find_base();
  void choose();
  void choose_row(std::uint32_t row);
  /// Raises one level for all that are chosen.
  void fill();
  void begin_filling();
  void stop_at(WireRate reached);
  WireRate level() const;
  void freeze(std::uint32_t id, WireRate reached);
  void note_loss(std::uint32_t id, std::int64_t now);
  WireRate full(std::uint32_t id) const { return traffic_.templates[id].full; }
  void schedule_end(std::uint32_t id);
  void set_rate(std::uint32_t id, WireRate rate, std::int64_t now);
  void clear(std::int64_t now);

  const Traffic& traffic_;
  Schedule schedule_;
  std::vector<Item> items_;
  std::vector<SharedRow> rows_;
  std::vector<std::uint32_t> touched_, fresh_;
  std::vector<std::uint32_t> chosen_, chosen_rows_, open_, stopped_;
  LossLedger losses_;
  WireRate base_ = 0;
  std::uint64_t solves_ = 0;
};

}  // namespace orrery::models::traffic
