#pragma once
// Random delays with which transfers and collectives are launched. On real ranks kernels and hosts
// vary, so that traffic of two ranks never meets in the same way twice; simulated ranks repeat one
// pattern exactly, and whether two transfers coincide may decide a step. Several samples with
// delays show what such coincidence is worth.
//
// Delays are exponential and independent, of one mean. A draw depends only on the seed, the sample
// and which transfer or collective of which replica it is, so that all sites draw equal numbers
// (common random numbers). Ranks of one tensor group, which wait for each other in every layer,
// have equal delays; all others are evaluated each by itself (Folding::always).

#include <cstdint>

#include "sim/quantity.hpp"

namespace orrery::models {

/// A group or a replica of a channel, by its place in the Program.
struct LaunchSource {
  std::uint32_t job = 0;  // 0: ours
  bool group = false;
  std::uint32_t id = 0;  // channel, or split of a group
  /// Number in its stage of the sender's, or the first member's, tensor group.
  std::uint32_t tensor_group = 0;
};

struct LaunchDelays {
  std::uint64_t seed = 0;
  std::uint32_t sample = 0;
  Time mean{};  // 0: none

  /// Of the k-th transfer or collective of a source.
  Time of(const LaunchSource& source, std::uint64_t k) const;
};

}  // namespace orrery::models
