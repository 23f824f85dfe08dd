#include "models/model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery::models {

namespace {

double scaled(const Rotary& rotary, double frequency) {
  if (rotary.scaling == RotaryScaling::none) return frequency;
  if (rotary.scaling == RotaryScaling::linear) return frequency / rotary.factor;
  const double turns = rotary.original_positions * frequency / (2 * std::numbers::pi);
  const double between = rotary.high_turns - rotary.low_turns;
  const double kept = between > 0 ? std::clamp((turns - rotary.low_turns) / between, 0.0, 1.0)
                                  : (turns > rotary.high_turns ? 1.0 : 0.0);
  return (1 - kept) * frequency / rotary.factor + kept * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t head_dim) {
  const double turned = static_cast<double>(head_dim) * rotary.share;
  const auto pairs = static_cast<std::int64_t>(turned) / 2;
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double exponent = -static_cast<double>(i) / static_cast<double>(pairs);
    frequencies.push_back(scaled(rotary, std::pow(rotary.base, exponent)));
  }
  return frequencies;
}

}  // namespace orrery::models
