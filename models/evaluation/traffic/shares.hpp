#pragma once
// Active traffic and its rates: max-min fair among the rows that are overloaded when all traffic
// runs at `full`. After an instant only rates that can have changed are solved again: those
// connected to the change through overloaded rows and not below the least rate that changed
// (`base_`). A row that fills at a lower rate holds nothing that ended or started: what ended would
// have been limited to that lower rate, and what started gets at least its equal part of a row.

#include <cstdint>
#include <functional>
#include <vector>

#include "models/evaluation/traffic/early.hpp"
#include "models/evaluation/traffic/losses.hpp"
#include "models/evaluation/traffic/traffic.hpp"
#include "sim/flows/max_min.hpp"

namespace orrery::models::traffic {

class WireShares {
 public:
  /// Called with a template's next end; a later call, with a larger serial number, replaces it.
  using Schedule = std::function<void(std::uint32_t id, std::uint32_t serial, std::int64_t end)>;

  WireShares(const Traffic& traffic, Schedule schedule);

  /// Continues from `before`, which is settled and whose templates stand for those here. Nothing
  /// has started here yet.
  void go_on(const WireShares& before, const EarlyTraffic& early, std::int64_t now);

  /// Starts the fluid part of an instance.
  /// Errors  an instance of the template is active: ContractError
  void start(std::uint32_t id, std::int64_t now, Time fluid);
  /// Is it the template's end that was scheduled last?
  bool due(std::uint32_t id, std::uint32_t serial) const {
    return items_[id].active && items_[id].serial == serial;
  }
  /// Ends an instance. Returns how much longer its fluid part took than alone.
  Time end(std::uint32_t id, std::int64_t now);
  /// Sets the capacity of a row.
  void change(std::uint32_t row, WireRate capacity);
  /// Ends an instant: solves the rates that can have changed.
  void settle(std::int64_t now);

  std::uint64_t solves() const { return solves_; }
  /// How long each row was overloaded until now.
  std::vector<Time> overloaded(std::int64_t now) const;
  /// Time that a template's instances took beyond that alone.
  Time lost(std::uint32_t id) const { return items_[id].lost; }
  const LossLedger& losses() const { return losses_; }

 private:
  using Amount = Int128;  // 2^-12 byte x ps

  struct Item {
    bool active = false, fresh = false, chosen = false, open = false;
    WireRate rate = 0, next = 0;
    Amount remaining = 0, amount = 0;
    std::uint32_t limit = 0;  // the row that limits it, where it is slower than alone
    std::int64_t since = 0, started = 0, alone = 0;
    std::uint32_t serial = 0;
    Time lost{};
  };
  struct SharedRow {
    WireRate capacity = 0;
    Amount load = 0;             // demand of its active templates at `full`
    std::vector<RowUse> active;  // active templates (in `row`) and their flows
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
  struct OpenTemplates;
  void fill();
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
  std::vector<std::uint32_t> chosen_, chosen_rows_;
  MaxMinFilling filling_{ShareTies::exact};
  LossLedger losses_;
  WireRate base_ = 0;
  std::uint64_t solves_ = 0;
};

}  // namespace orrery::models::traffic
