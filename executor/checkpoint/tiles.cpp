#include "executor/checkpoint/tiles.hpp"

#include <algorithm>

namespace orrery::executor {

std::vector<Tile> tiles_of(const std::vector<StateRun>& runs, Which which) {
  std::vector<Tile> tiles;
  for (const StateRun& run : runs) {
    if (run.count == 0 || (which == Which::written && !run.writer)) continue;
    if (!tiles.empty()) {
      Tile& last = tiles.back();
      const std::int64_t step = run.offset - (last.first + (last.rows - 1) * last.stride);
      const bool regular = last.rows == 1 ? step > 0 : step == last.stride;
      if (last.tensor == run.tensor && last.count == run.count && regular &&
          run.local == last.local + last.elements()) {
        last.stride = step;
        ++last.rows;
        continue;
      }
    }
    tiles.push_back({run.tensor, run.offset, run.count, run.count, 1, run.local});
  }
  return tiles;
}

void for_each_overlap(const Tile& stored, const Tile& wanted,
                      const std::function<void(const TileOverlap&)>& visit) {
  for (std::int64_t w = 0; w < wanted.rows; ++w) {
    const std::int64_t begin = wanted.first + w * wanted.stride;
    const std::int64_t end = begin + wanted.count;
    // The first stored run that ends after `begin`; runs do not overlap each other.
    const std::int64_t past = begin - stored.first - stored.count + 1;
    std::int64_t s = past <= 0 ? 0 : (past + stored.stride - 1) / stored.stride;
    for (; s < stored.rows; ++s) {
      const std::int64_t from = stored.first + s * stored.stride;
      if (from >= end) break;
      const std::int64_t low = std::max(begin, from);
      const std::int64_t high = std::min(end, from + stored.count);
      if (low >= high) continue;
      visit({.in_stored = s * stored.count + (low - from),
             .in_wanted = w * wanted.count + (low - begin),
             .count = high - low});
    }
  }
}

}  // namespace orrery::executor
