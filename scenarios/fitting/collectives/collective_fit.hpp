#pragma once
// Fits the few constants of the collective cost model that differ between machines: base and step
// of a domain (and its PCIe rates), and a fabric's latency, ramp and shares. Constants common to
// all machines stay as in models/network/collectives/.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "scenarios/fitting/collectives/measured_collective.hpp"

namespace orrery::scenarios {

/// A measured row and the catalogue's cluster for its machine. Both outlive it.
struct CollectiveSample {
  const MeasuredCollective* row = nullptr;
  const hardware::Cluster* machine = nullptr;
};

/// Constants that replace the catalogue's; nothing: the catalogue's stays.
struct CollectiveSystem {
  std::optional<double> base, step;              // seconds
  std::vector<hardware::GroupRate> group_rates;  // PCIe only
  std::optional<double> network, half_size;      // seconds
  std::optional<double> growth, efficiency, gather_efficiency;
  bool uses_fallback = false;  // network constants are those of other networks

  std::vector<std::pair<std::string, double>> parameters() const;
};

/// Seconds of a call by the cost model with these constants, with the row's algorithm if it names
/// one, else the fastest.
double modelled(const CollectiveSample& sample, const CollectiveSystem& system);

/// Fits base and step to rows inside one domain. With fewer than 8 rows: the catalogue's.
CollectiveSystem fit_domain(const std::vector<CollectiveSample>& samples);
/// Fits a fabric's constants to rows across domains; `domain` is fitted before. Fewer than 8:
/// `domain`.
CollectiveSystem fit_fabric(const std::vector<CollectiveSample>& samples, CollectiveSystem domain);

}  // namespace orrery::scenarios
