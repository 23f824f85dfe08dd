#pragma once
// Who lost what to whom. A template that is slower than alone is limited by one row; while it is,
// it loses full - rate of every moment, to the others on that row by what they have of it. In
// integers, so that the ledger closes: what is lost is what the same time would have carried alone.

#include <cstdint>
#include <map>
#include <vector>

#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

class LossLedger {
 public:
  using Amount = Int128;  // 2^-12 byte x ps

  explicit LossLedger(std::size_t templates) : entries_(templates) {}

  /// Goes on with what was found while some stood for others: by id there, of each one here.
  void go_on(const LossLedger& before, const std::vector<std::uint32_t>& stood_for);

  struct Other {
    std::uint32_t id = 0;
    WireRate share = 0;  // flows x rate
  };

  /// From now on a template loses `rate`; to those others, none where nothing limits it.
  void lose(std::uint32_t id, std::int64_t now, WireRate rate, std::vector<Other> others);
  /// What one instance has lost; it has ended.
  Amount end(std::uint32_t id, std::int64_t now);

  /// By whom it lost, share x time of each.
  const std::map<std::uint32_t, Amount>& to(std::uint32_t id) const { return entries_[id].to; }

 private:
  struct Losses {
    std::int64_t since = 0;
    WireRate rate = 0;
    Amount lost = 0;  // of the instance under way
    std::vector<Other> others;
    std::map<std::uint32_t, Amount> to;
  };
  void settle(Losses& entry, std::int64_t now);

  std::vector<Losses> entries_;
};

}  // namespace orrery::models::traffic
