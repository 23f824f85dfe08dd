#pragma once
// Cosines and sines of rotary position embeddings, computed in kernels.

#include <algorithm>

#include "executor/device/cuda/kernels/device_code.hpp"
#include "models/program/operation.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

/// Radians per position of each pair of a head; passed by value as an argument of the kernel.
struct Frequencies {
  static constexpr int most_pairs = 128;
  double of[most_pairs]{};
  double magnitude = 1;  // of cosines and sines
  int pairs = 0;

  explicit Frequencies(const models::Operation& op)
      : magnitude{op.magnitude()}, pairs{static_cast<int>(op.frequencies().size())} {
    ensure(pairs <= most_pairs, "rotary positions of heads wider than 256");
    std::copy(op.frequencies().begin(), op.frequencies().end(), of);
  }
};

template <class C>
struct Rotation {
  C cosine, sine;
};

/// The angle is reduced to at most half a turn in fp64, so that fp32 keeps its digits at far
/// positions.
template <class C>
__device__ Rotation<C> rotation_by(double angle, double magnitude) {
  constexpr double whole = 6.283185307179586477;
  const double rest = angle - whole * rint(angle / whole);
  if constexpr (std::is_same_v<C, double>) {
    return {magnitude * cos(rest), magnitude * sin(rest)};
  } else {
    const auto times = static_cast<float>(magnitude);
    return {times * cosf(static_cast<float>(rest)), times * sinf(static_cast<float>(rest))};
  }
}

}  // namespace orrery::executor::cuda
