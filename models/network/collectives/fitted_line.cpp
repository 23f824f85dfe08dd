#include "models/network/collectives/fitted_line.hpp"

#include "sim/errors.hpp"

namespace orrery::models {

FittedLine fitted_line(const std::vector<hardware::SizeTable::Point>& points) {
  ensure(!points.empty(), "a line is fitted to at least one time");
  double xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
  for (const auto& [size, time] : points) {
    const double x = 1 / seconds(time);
    const double y = static_cast<double>(size.count()) * x;
    xx += x * x, xy += x * y, yy += y * y, xt += x, yt += y;
  }
  const double determinant = xx * yy - xy * xy;
  FittedLine both;
  if (determinant > 1e-12 * xx * yy) {
    both = {(xt * yy - yt * xy) / determinant, (yt * xx - xt * xy) / determinant};
  }
  if (both.latency <= 0) both = {0, yt / yy};
  if (both.per_byte <= 0) both = {xt / xx, 0};
  return both;
}

}  // namespace orrery::models
