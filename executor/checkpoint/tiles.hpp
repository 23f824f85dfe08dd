#pragma once
// Describes with few numbers which elements of a tensor a rank holds: a tile is `rows` runs of
// `count` elements, `stride` apart in the unsharded tensor and one after another in the rank's
// memory. A column shard of a matrix is one tile, however many rows it has.

#include <cstdint>
#include <functional>
#include <vector>

#include "executor/run/runner.hpp"

namespace orrery::executor {

/// A regular set of elements of one tensor.
struct Tile {
  std::uint32_t tensor = 0;
  std::int64_t first = 0;   // element of the unsharded tensor
  std::int64_t count = 0;   // elements of a run
  std::int64_t stride = 0;  // from run to run
  std::int64_t rows = 1;
  std::int64_t local = 0;  // where the first element lies in the rank's state

  std::int64_t elements() const { return count * rows; }
  friend bool operator==(const Tile&, const Tile&) = default;
};

/// Runs as tiles, in the order given; only of the runs that this rank writes, or of all.
enum class Which : std::uint8_t { written, all };
std::vector<Tile> tiles_of(const std::vector<StateRun>& runs, Which which);

/// Elements that two tiles of one tensor share, run by run.
struct TileOverlap {
  std::int64_t in_stored = 0;  // offset from the beginning of the stored tile's elements
  std::int64_t in_wanted = 0;
  std::int64_t count = 0;
};
void for_each_overlap(const Tile& stored, const Tile& wanted,
                      const std::function<void(const TileOverlap&)>& visit);

}  // namespace orrery::executor
