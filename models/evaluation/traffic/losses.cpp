#include "models/evaluation/traffic/losses.hpp"

#include <utility>

namespace orrery::models::traffic {

void LossLedger::settle(Losses& entry, std::int64_t now) {
  const std::int64_t elapsed = now - std::exchange(entry.since, now);
  if (elapsed == 0 || entry.rate == 0) return;
  entry.lost += Amount{elapsed} * entry.rate;
  for (const Other& each : entry.others) entry.to[each.id] += Amount{elapsed} * each.share;
}

void LossLedger::lose(std::uint32_t id, std::int64_t now, WireRate rate,
                      std::vector<Other> others) {
  Losses& entry = entries_[id];
  settle(entry, now);
  entry.rate = rate;
  entry.others = std::move(others);
}

LossLedger::Amount LossLedger::end(std::uint32_t id, std::int64_t now) {
  Losses& entry = entries_[id];
  settle(entry, now);
  entry.rate = 0;
  return std::exchange(entry.lost, 0);
}

}  // namespace orrery::models::traffic
