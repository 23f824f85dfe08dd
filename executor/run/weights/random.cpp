#include "executor/run/weights/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "executor/run/weights/approximate_normals.hpp"

namespace orrery::executor {

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const auto drawn = draw(index);
  return (std::uint64_t{drawn[1]} << 32) | drawn[0];
}

double RandomStream::normal(std::uint64_t index) const {
  const auto drawn = draw(index);
  const double u = (static_cast<double>(drawn[0]) + 0.5) * 0x1p-32;  // never 0
  const double v = (static_cast<double>(drawn[1]) + 0.5) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

/// Draws approximate numbers with an error bound. Where both ends of the interval round to the same
/// float, so does the exact number; only for the few others is the exact number computed.
void RandomStream::normals(std::uint64_t first, double deviation, std::span<float> to) const {
  ApproximateNormals some;
  for (std::size_t at = 0; at < to.size(); at += some.size) {
    const std::size_t count = std::min(some.size, to.size() - at);
    approximate_normals(seed_, stream_, first + at, deviation, some);
    const std::span<float> part = to.subspan(at, count);
    std::size_t unsettled = 0;
    for (std::size_t i = 0; i < count; ++i) {
      part[i] = static_cast<float>(some.value[i] - some.error[i]);
      unsettled += part[i] != static_cast<float>(some.value[i] + some.error[i]) ? 1 : 0;
    }
    for (std::size_t i = 0; unsettled > 0 && i < count; ++i) {
      if (part[i] == static_cast<float>(some.value[i] + some.error[i])) continue;
      part[i] = static_cast<float>(deviation * normal(first + at + i));
      --unsettled;
    }
  }
}

std::uint64_t stream_number(std::string_view name) {
  Fnv1a hash;
  for (const char c : name) hash.add(static_cast<unsigned char>(c));
  return hash.value();
}

}  // namespace orrery::executor
