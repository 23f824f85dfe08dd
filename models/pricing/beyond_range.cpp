#include "models/pricing/beyond_range.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models {

namespace {

double ratio_beyond(std::int64_t lowest, std::int64_t highest, std::int64_t size) {
  const auto of = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) / static_cast<double>(std::max<std::int64_t>(1, b));
  };
  return std::max({1.0, of(lowest, size), of(size, highest)});
}

}  // namespace

double beyond(const hardware::GemmRange& range, const hardware::GemmSize& shape) {
  return std::max({ratio_beyond(range.lowest.m, range.highest.m, shape.m),
                   ratio_beyond(range.lowest.n, range.highest.n, shape.n),
                   ratio_beyond(range.lowest.k, range.highest.k, shape.k)});
}

double beyond(const hardware::SequenceRange& range, std::int64_t tokens) {
  return ratio_beyond(range.shortest, range.longest, tokens);
}

double beyond(const hardware::SizeTable& table, Bytes size) {
  ensure(!table.empty(), "a measured table has a size");
  return ratio_beyond(table.points().front().first.count(), table.points().back().first.count(),
                      size.count());
}

}  // namespace orrery::models
