#include "models/model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery::models {

namespace {

/// YaRN's bounds: the (fractional) index of the pair that makes `turns` rotations within
/// `original_positions`.
double pair_that_turns(const Rotary& rotary, double turns, double pairs) {
  const double longest = rotary.original_positions / (turns * 2 * std::numbers::pi);
  return pairs * std::log(longest) / std::log(rotary.base);
}

/// YaRN: fast pairs keep their frequency, slow ones are divided by `factor`, with a linear ramp
/// over the pair index in between.
void scale_by_pair(const Rotary& rotary, std::vector<double>& frequencies) {
  const auto pairs = static_cast<double>(frequencies.size());
  double first = pair_that_turns(rotary, rotary.high_turns, pairs);
  double last = pair_that_turns(rotary, rotary.low_turns, pairs);
  if (rotary.whole_pairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, 2 * pairs - 1);
  if (first == last) last += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] *= slowed / rotary.factor + 1 - slowed;
  }
}

double scaled(const Rotary& rotary, double frequency) {
  const bool by_pair = rotary.scaling == RotaryScaling::yarn;
  if (rotary.scaling == RotaryScaling::none || by_pair) return frequency;
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
  if (rotary.scaling == RotaryScaling::yarn) scale_by_pair(rotary, frequencies);
  return frequencies;
}

}  // namespace orrery::models
