#pragma once
// Many normal numbers at a time, on vectors of doubles: nearly those of RandomStream::normal, with
// a bound on the difference. For random.cpp alone.

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::executor {

struct ApproximateNormals {
  static constexpr std::size_t size = 1024;
  std::array<double, size> value, error;
};

/// value[i] is deviation * normal(first + i) to within error[i].
void approximate_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                         double deviation, ApproximateNormals& to);

}  // namespace orrery::executor
