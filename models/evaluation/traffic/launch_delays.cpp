#include "models/evaluation/traffic/launch_delays.hpp"

#include <cmath>

namespace orrery::models {

namespace {

/// One step of SplitMix64 (Steele, Lea & Flood 2014).
std::uint64_t split_mix(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) + 0x9e37'79b9'7f4a'7c15;
  state = (state ^ (state >> 30)) * 0xbf58'476d'1ce4'e5b9;
  state = (state ^ (state >> 27)) * 0x94d0'49bb'1331'11eb;
  return state ^ (state >> 31);
}

}  // namespace

Time LaunchDelays::of(const LaunchSource& source, std::uint64_t k) const {
  if (mean == Time{}) return Time{};
  std::uint64_t state = split_mix(seed, sample);
  state = split_mix(state, std::uint64_t{source.job} << 32 | source.id);
  state = split_mix(state, std::uint64_t{source.tensor_group} << 1 | (source.group ? 1 : 0));
  state = split_mix(state, k);
  const double uniform = (static_cast<double>(state >> 11) + 0.5) * 0x1p-53;  // within 0 and 1
  return scaled(mean, -std::log(uniform));
}

}  // namespace orrery::models
