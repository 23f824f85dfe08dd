#include "executor/device/cpu/fp8.hpp"

#include <algorithm>
#include <bit>

#include "executor/device/fp8.hpp"

namespace orrery::executor::cpu {

namespace {

std::uint32_t largest_magnitude(const float* numbers, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(numbers[i]) & 0x7fffffffU);
  }
  return largest;
}

struct Factors {
  float scale, inverse;

  explicit Factors(Fp8Scale bits)
      : scale{std::bit_cast<float>(bits.bits)}, inverse{std::bit_cast<float>(bits.inverse)} {}
};

}  // namespace

void quantise(const float* numbers, const View& to, Fp8 format) {
  const std::int64_t n = to.elements();
  with_fp8_format(format, [&](auto stored) {
    using T = decltype(stored);
    const Factors factors{fp8_scale_for<T>(largest_magnitude(numbers, n))};
    auto* codes = reinterpret_cast<T*>(to.data);
    for (std::int64_t i = 0; i < n; ++i) narrow(numbers[i] * factors.scale, codes[i]);
    *fp8_inverse_scale(to) = factors.inverse;
  });
}

void decode(const View& from, Fp8 format, float* to) {
  const float inverse = *fp8_inverse_scale(from);
  with_fp8_format(format, [&](auto stored) {
    const auto* codes = reinterpret_cast<const decltype(stored)*>(from.data);
    for (std::int64_t i = 0; i < from.elements(); ++i) to[i] = widened(codes[i]) * inverse;
  });
}

void round_to_fp8(float* numbers, std::int64_t count, Fp8 format) {
  with_fp8_format(format, [&](auto stored) {
    const Factors factors{fp8_scale_for<decltype(stored)>(largest_magnitude(numbers, count))};
    for (std::int64_t i = 0; i < count; ++i) {
      narrow(numbers[i] * factors.scale, stored);
      numbers[i] = widened(stored) * factors.inverse;
    }
  });
}

}  // namespace orrery::executor::cpu
