#pragma once
// A block or phase as a (max,+) matrix that takes the lane times before it to those after it.
// Durations are fixed numbers in it: links that traffic shares are not.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/evaluation/chain_times.hpp"
#include "models/program/program.hpp"

namespace orrery::models {

/// A (max,+) map: out_i = max_j (column_j[i] + in_j).
struct MaxPlusMap {
  alignas(16) std::array<std::array<std::int64_t, chain_states>, chain_states> columns;

  static MaxPlusMap identity() {
    MaxPlusMap map;
    for (int j = 0; j < chain_states; ++j) {
      for (int i = 0; i < chain_states; ++i) map.columns[j][i] = i == j ? 0 : never;
    }
    return map;
  }

  static MaxPlusMap of(const Chain<AffineTime>& rows) {
    MaxPlusMap map;
    for (int j = 0; j < chain_states; ++j) {
      for (int i = 0; i < chain_states; ++i) map.columns[j][i] = rows[i].coefficients[j];
    }
    return map;
  }

  /// Reads `in(j)` one number at a time: a wide load right after narrow stores would stall.
  template <class In>
  std::array<std::int64_t, chain_states> apply(In&& in) const {
    std::array<std::int64_t, chain_states> out;
    out.fill(never);
    for (int j = 0; j < chain_states; ++j) {
      const std::int64_t x = in(j);
      for (int i = 0; i < chain_states; ++i) {
        const std::int64_t candidate = columns[j][i] + x;
        out[i] = candidate > out[i] ? candidate : out[i];
      }
    }
    return out;
  }

  /// This map followed by `next`. Coefficients of minus infinity stay exactly `never`, so that
  /// repeated sums cannot overflow.
  MaxPlusMap then(const MaxPlusMap& next) const {
    MaxPlusMap both;
    for (int j = 0; j < chain_states; ++j) {
      auto column = next.apply([&](int i) { return columns[j][i]; });
      for (std::int64_t& each : column) each = each < never / 2 ? never : each;
      both.columns[j] = column;
    }
    return both;
  }

  /// Becomes the element-wise maximum of the two maps.
  void raise(const MaxPlusMap& other) {
    for (int j = 0; j < chain_states; ++j) {
      for (int i = 0; i < chain_states; ++i) {
        columns[j][i] = std::max(columns[j][i], other.columns[j][i]);
      }
    }
  }
};

/// A map applied `count` times, by repeated squaring. `Map` has `identity` and `then`.
template <class Map>
Map power(const Map& map, std::int64_t count) {
  if (count == 1) return map;
  Map result = Map::identity();
  for (Map base = map; count > 0; count /= 2) {
    if (count % 2 == 1) result = result.then(base);
    if (count > 1) base = base.then(base);
  }
  return result;
}

/// Calls `add` with the map of each list of blocks that some phase runs, from the maps of blocks;
/// returns each phase's number among these lists.
template <class Map, class Add>
std::vector<std::uint32_t> each_phase_map(const Program& program, const std::vector<Map>& blocks,
                                          Add add) {
  std::map<std::vector<std::pair<std::uint32_t, std::int64_t>>, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  for (const Phase& phase : program.phases) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> runs;
    for (const Invocation& each : phase.invocations) runs.emplace_back(each.block, each.count);
    const auto next = static_cast<std::uint32_t>(known.size());
    const auto [found, fresh] = known.try_emplace(std::move(runs), next);
    numbers.push_back(found->second);
    if (!fresh) continue;
    Map all = Map::identity();
    for (const auto& [block, count] : found->first) all = all.then(power(blocks[block], count));
    add(all);
  }
  return numbers;
}

}  // namespace orrery::models
