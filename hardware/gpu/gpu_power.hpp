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

/// The part of a node that every one of its GPUs carries: its share of the host under load, which
/// is that of NodeType::host_power which a measured server drew (`host_power` of
/// hardware/measured/rates.csv).
Power host_share(const NodeType& node);

}  // namespace orrery::hardware
