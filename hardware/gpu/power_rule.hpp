#pragma once
// The share of peak that large GEMMs sustain, by the power that a GPU has for each FLOP, for one
// family of silicon. Leaves out temperature, differences between cards of one model (2.5 to 4 %),
// and that bursts and data of zeros run at higher clocks.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// W per TFLOP/s: board power over dense bf16 peak.
using EnergyPerFlop = Quantity<struct PicojoulePerFlop, double>;

/// A GPU whose share is known and whose power limits it.
struct PowerPeer {
  std::string gpu;
  double share = 0;  // of its bf16 peak
  EnergyPerFlop power{};
};

/// One of a generation's families of silicon; numbers and sources in
/// hardware/catalogue/generations.json.
struct PowerRule {
  /// Of the family, without what the catalogue's entry of `gpu` says.
  struct StatedPeer {
    std::string gpu;  // may be one that the catalogue lacks, if both numbers are stated
    std::optional<double> share;
    std::optional<EnergyPerFlop> power;
  };

  std::string silicon;             // "ga10x"
  std::optional<StatedPeer> peer;  // none: no GPU of the family that power limits is known
  double exponent = 0;
  EnergyPerFlop plentiful{};        // from here on power does not limit
  double cap = 1;                   // share where it does not
  double spread = 0;                // standard deviation of ln(share measured / by the rule)
  std::optional<double> attention;  // share of flash-2 over that of a GEMM; heads of 128
  std::optional<Time> gemm_overhead;
  std::map<DType, double> formats;  // shares of formats that no tensor core multiplies
};

std::vector<PowerRule> read_power_rules(const Node& rules);

/// Factor on a share of peak when the power for each FLOP changes; 1 where it is plentiful.
///   (min(to, plentiful) / min(from, plentiful))^exponent
/// Source  AMD's GEMM rates with their median clocks: at its own clock every MI300X and MI325X runs
///         one shape at the same share, 0.94 of bf16 and 0.83 of fp8, so the clock alone, which the
///         power limit sets, makes the difference
double power_factor(const PowerRule& rule, EnergyPerFlop from, EnergyPerFlop to);

/// min(cap, share of the peer * power_factor); the cap without a peer where power is plentiful;
/// nothing without a peer where it is not.
/// Source  GEMM rates of 23 GPUs published by their owners, each left out in turn: median error of
///         the share 7 %, 90th percentile 23 %
std::optional<double> sustained_share(const PowerRule& rule, const std::optional<PowerPeer>& peer,
                                      EnergyPerFlop power);

/// Standard deviation of ln(share): the rule's, less for a GPU with nearly the peer's power per
/// FLOP, from 0 at the same to all of it at 20 % more or less.
double sustained_spread(const PowerRule& rule, const std::optional<PowerPeer>& peer,
                        EnergyPerFlop power);

}  // namespace orrery::hardware
