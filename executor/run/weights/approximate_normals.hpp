#pragma once
// Approximations of RandomStream::normal, many at a time in vectorised double precision, each with
// a bound on its error. Used by random.cpp only.

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::executor {

/// One batch of approximate values and their error bounds.
struct ApproximateNormals {
  static constexpr std::size_t size = 1024;
  std::array<double, size> value, error;
};

/// Sets value[i] to deviation * normal(first + i) to within error[i].
void approximate_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                         double deviation, ApproximateNormals& to);

}  // namespace orrery::executor
