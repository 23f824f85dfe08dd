#pragma once
// Measured times by size, interpolated between sizes. The interpolated table predicts a held-out
// size better than any line through it (docs of scenarios/fitting/).

#include <utility>
#include <vector>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Between two points the time is a line in log(size), log(time).
///   t(s) = t_a * (s / s_a)^(log(t_b / t_a) / log(s_b / s_a)),   s_a <= s <= s_b
/// Below the first point it is that point's time: latency. Beyond the last it continues with the
/// slope of the last two points, or in proportion to the size if there is only one point.
class SizeTable {
 public:
  using Point = std::pair<Bytes, Time>;

  SizeTable() = default;
  /// Points by increasing size. Errors  none, a size or time below 1, sizes that do not increase:
  /// ContractError
  explicit SizeTable(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  /// Errors  an empty table: ContractError
  Time at(Bytes size) const;
  bool covers(Bytes size) const;
  /// Time of the smallest size.
  Time latency() const;

 private:
  std::vector<Point> points_;
};

}  // namespace orrery::hardware
