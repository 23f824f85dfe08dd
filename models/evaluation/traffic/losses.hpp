#pragma once
// How much each template loses to which others by sharing links. A template that is slower than
// alone is limited by one row; at every moment it loses `full` - rate, to the other templates on
// that row in proportion to their shares of it. Integers, so that the ledger balances: carried and
// lost amounts add up to what the same time would have carried alone.

#include <cstdint>
#include <map>
#include <vector>

#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

class LossLedger {
 public:
  using Amount = Int128;  // 2^-12 byte x ps

  explicit LossLedger(std::size_t templates) : entries_(templates) {}

  /// Continues from `before`, in which `stood_for[id]` is the template that stood for template `id`
  /// here.
  void go_on(const LossLedger& before, const std::vector<std::uint32_t>& stood_for);

  struct Other {
    std::uint32_t id = 0;
    WireRate share = 0;  // flows x rate
  };

  /// From `now` on a template loses `rate`, to `others`; to none where nothing limits it.
  void lose(std::uint32_t id, std::int64_t now, WireRate rate, std::vector<Other> others);
  /// Ends an instance. Returns the amount that it has lost.
  Amount end(std::uint32_t id, std::int64_t now);

  /// To which other templates it lost, as share x time of each.
  const std::map<std::uint32_t, Amount>& to(std::uint32_t id) const { return entries_[id].to; }

 private:
  struct Losses {
    std::int64_t since = 0;
    WireRate rate = 0;
    Amount lost = 0;  // of the active instance
    std::vector<Other> others;
    std::map<std::uint32_t, Amount> to;
  };
  void settle(Losses& entry, std::int64_t now);

  std::vector<Losses> entries_;
};

}  // namespace orrery::models::traffic
