#pragma once
// Memory of one rank over its instruction list: what memory_peaks (memory.hpp) takes the maximum
// of. Times are not known here: an instruction's buffers are counted from when the host reaches it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Bytes of a rank while one instruction runs, and after it has freed what it frees.
struct MemoryAt {
  Bytes during{}, after{};
};

/// Of each instruction of the class's list, buffers held for the whole step included; the largest
/// `during` is the class's peak.
std::vector<MemoryAt> memory_course(const Program& program, std::uint32_t rank_class);

/// What a rank whose peak is `peak` holds besides the Program's buffers: context and fragmentation,
/// less what a loss writes over. Taken as constant over the step.
inline Bytes around_course(const std::vector<MemoryAt>& course, Bytes peak) {
  Bytes highest{};
  for (const MemoryAt& each : course) highest = std::max(highest, each.during);
  return peak + highest * -1;
}

}  // namespace orrery::models
