#pragma once
// Cosines and sines of rotary position embeddings on the CPU.

#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

/// cos and sin of position x frequency, times the magnitude, [sequence][pairs]; in the ring small
/// integers that differ by position.
template <class T>
std::vector<std::pair<T, T>> computed_rotations(std::int64_t sequence,
                                                const std::vector<double>& frequencies,
                                                double magnitude) {
  const auto pairs = static_cast<std::int64_t>(frequencies.size());
  std::vector<std::pair<T, T>> rotations(static_cast<std::size_t>(sequence * pairs));
  for (std::int64_t s = 0; s < sequence; ++s) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      auto& rotation = rotations[static_cast<std::size_t>(s * pairs + i)];
      if constexpr (in_ring<T>) {
        rotation = {static_cast<T>(2 * s + 1), static_cast<T>(s + i)};
      } else {
        const double angle = static_cast<double>(s) * frequencies[static_cast<std::size_t>(i)];
        rotation = {static_cast<T>(magnitude * std::cos(angle)),
                    static_cast<T>(magnitude * std::sin(angle))};
      }
    }
  }
  return rotations;
}

/// The same, cached by each rank's thread, as every layer needs it again.
template <class T>
const std::vector<std::pair<T, T>>& rotations_of(std::int64_t sequence,
                                                 const std::vector<double>& frequencies,
                                                 double magnitude) {
  using Shape = std::tuple<std::int64_t, double, std::vector<double>>;
  thread_local std::map<Shape, std::vector<std::pair<T, T>>> kept;
  const auto [found, fresh] = kept.try_emplace(Shape{sequence, magnitude, frequencies});
  if (fresh) found->second = computed_rotations<T>(sequence, frequencies, magnitude);
  return found->second;
}

}  // namespace orrery::executor::cpu
