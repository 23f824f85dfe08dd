#pragma once
// A GPU whose board is set to less than its power: the clock that is left to GEMMs and attention.
// Leaves out kernels limited by memory, which draw less than a limit in use, and temperature.

#include <string>

#include "hardware/gpu/gpu.hpp"

namespace orrery::hardware {

/// Multiplies the shares of peak of GEMMs and attention, measured ones too, by
///   power_factor(rule, board power / peak, power limit / peak)
/// and widens their spread by the rule's.
void apply_power_limit(Gpu& gpu);

/// "power limit of 500 W of 700 W: ..."; empty without one.
std::string power_limit_note(const Gpu& gpu);

}  // namespace orrery::hardware
