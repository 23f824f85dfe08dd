#include "hardware/curves/size_table.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

/// Picoseconds per additional byte between two points; a decrease is noise and counts as 0.
double slope(const SizeTable::Point& from, const SizeTable::Point& to) {
  const auto time = static_cast<double>((to.second - from.second).count());
  return std::max(0.0, time / static_cast<double>((to.first - from.first).count()));
}

Time between(const SizeTable::Point& low, const SizeTable::Point& high, Bytes size) {
  const double part = std::log(ratio(size, low.first)) / std::log(ratio(high.first, low.first));
  return scaled(low.second, std::pow(ratio(high.second, low.second), part));
}

}  // namespace

SizeTable::SizeTable(std::vector<Point> points) : points_{std::move(points)} {
  ensure(!points_.empty(), "a measured table has a point");
  for (std::size_t i = 0; i < points_.size(); ++i) {
    ensure(points_[i].first >= Bytes{1} && points_[i].second >= Time{1},
           "a measured size takes a time");
    ensure(i == 0 || points_[i - 1].first < points_[i].first, "measured sizes increase");
  }
}

Time SizeTable::at(Bytes size) const {
  ensure(!points_.empty(), "a measured table has a point");
  const auto above = std::ranges::lower_bound(points_, size, {}, &Point::first);
  if (above == points_.begin()) return points_.front().second;
  if (above != points_.end()) return between(above[-1], *above, size);
  const Point& last = points_.back();
  if (points_.size() == 1) return scaled(last.second, ratio(size, last.first));
  const auto more = static_cast<double>((size - last.first).count());
  return last.second + nearest_count<Time>(more * slope(above[-2], last));
}

bool SizeTable::covers(Bytes size) const {
  return !points_.empty() && points_.front().first <= size && size <= points_.back().first;
}

Time SizeTable::latency() const {
  ensure(!points_.empty(), "a measured table has a point");
  return points_.front().second;
}

}  // namespace orrery::hardware
