#pragma once
// exp in a form that compilers turn into vector code.

#include <bit>
#include <cmath>
#include <cstdint>

namespace orrery::executor::cpu {

/// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; within 2 units in the last place for
/// normal results, 0 below and infinity above.
/// Source  polynomial of expf in the Cephes library (Moshier), ln 2 in two parts as there
inline float exponential(float x) {
  const float clamped = std::fmin(std::fmax(x, -87.0F), 88.0F);
  // Adding 1.5 x 2^23 leaves the nearest integer in the lowest bits of the mantissa.
  const float shifted = clamped * 1.44269504F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float fraction = p * r * r + r + 1.0F;
  const std::int32_t power = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000) << 23;
  const float y = std::bit_cast<float>(std::bit_cast<std::int32_t>(fraction) + power);
  return x < -87.0F ? 0.0F : (x > 88.0F ? HUGE_VALF : y);
}

inline double exponential(double x) {
  return std::exp(x);
}

}  // namespace orrery::executor::cpu
