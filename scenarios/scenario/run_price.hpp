#pragma once
// What a GPU-hour costs by a scenario's member `run`: a price, owning, or pools of nodes.

#include <cstdint>
#include <string_view>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::scenarios {

inline constexpr std::int64_t most_count = std::int64_t{1} << 40;

/// What it costs to own a GPU with its share of everything else.
///   annuity = (C - s C / (1+w)^n) w / (1 - (1+w)^-n)
///   per year = annuity + kW load PUE $/kWh 8766 + staff + maintenance C
struct OwnedGpu {
  Money capex{49'248};  // node, network, hall, per GPU
  double life_years = 4;
  double residual = 0.1;     // share of the capital at its end
  double wacc = 0.1;         // cost of capital a year
  double kilowatts = 1.275;  // nameplate, with the share of the host
  double load = 0.75;        // of nameplate
  double pue = 1.25;
  double power_price = 0.08;  // $/kWh
  double colocation = 0;      // $ per kW-month; energy is then in it
  Money staff{500};           // a year
  double maintenance = 0.02;  // of the capital, a year
  double used = 1;            // share of the hours
};
/// Dollars per used GPU-hour. Source  tco_params: H100 cost sheet of 2024-08, Epoch AI
Price hourly_price(const OwnedGpu& owned);

/// A number within bounds, both included. Errors  InputError with its pointer
double number_or(const Node& node, std::string_view key, double otherwise, double low, double high);
/// Member `pue`: power usage effectiveness of a hall, 1 to 5.
double pue_or(const Node& energy, double otherwise);
/// Reads member `own`; `pue` where it states none.
OwnedGpu read_owned(const Node& node, double pue);

/// Gives a cluster the price of a GPU-hour that `run` states, if it does: `price`; of `own` what
/// owning costs; of `pools` the mean over their nodes.
void take_run_price(const Node& run, hardware::Cluster& cluster);

}  // namespace orrery::scenarios
