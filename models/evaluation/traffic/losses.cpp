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

void LossLedger::go_on(const LossLedger& before, const std::vector<std::uint32_t>& stood_for) {
  std::vector<std::uint32_t> first(before.entries_.size(), 0);
  for (auto id = static_cast<std::uint32_t>(stood_for.size()); id-- > 0;) first[stood_for[id]] = id;
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    Losses& entry = entries_[id] = before.entries_[stood_for[id]];
    for (Other& each : entry.others) each.id = first[each.id];
    std::map<std::uint32_t, Amount> to;
    for (const auto& [other, share] : entry.to) to[first[other]] += share;
    entry.to = std::move(to);
  }
}

LossLedger::Amount LossLedger::end(std::uint32_t id, std::int64_t now) {
  Losses& entry = entries_[id];
  settle(entry, now);
  entry.rate = 0;
  return std::exchange(entry.lost, 0);
}

}  // namespace orrery::models::traffic
