#pragma once
// What a GPU draws, by what it does: shares of its board power, per generation. Leaves out clocks,
// temperature, and that small or unaligned GEMMs draw less than large ones.

#include "hardware/cluster/cluster.hpp"
#include "hardware/gpu/generation.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Shares of the board power, ascending; sources in hardware/catalogue/generations.json.
struct PowerStates {
  double idle = 0;     // no process
  double waiting = 0;  // a process, but no kernel or one that polls or moves bytes between GPUs
  double memory_bound = 0;  // kernels that saturate the memory
  double math = 0;          // GEMMs and attention
};

/// Errors  a generation whose entry states none, or not in this order: InputError
const PowerStates& power_states(const Generation& generation);

/// What a GPU draws in each state: its share of the board power, at most the power limit.
struct PowerDraw {
  Power idle{}, waiting{}, memory_bound{}, math{};
};
PowerDraw power_draw(const Gpu& gpu);

/// A node without its GPUs under load, as a share of NodeType::host_power, which is what the server
/// is rated at beyond its GPUs: the most that an HGX H100 of 10.2 kW drew while its eight GPUs of
/// 700 W were near full utilisation is 8.4 kW (arXiv:2412.08602).
inline constexpr double host_load = (8.4 - 8 * 0.7) / (10.2 - 8 * 0.7);

/// The part of a node that every one of its GPUs carries: its share of the host under load.
Power host_share(const NodeType& node);

}  // namespace orrery::hardware
