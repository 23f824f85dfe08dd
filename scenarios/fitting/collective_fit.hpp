#pragma once
// The few constants of the collective cost model that differ from machine to machine, fitted to
// measured runs: base and step of a domain (and its PCIe rates), and a fabric's latency, ramp and
// shares. The constants that machines share stay those of models/network/collectives/.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hardware/cluster.hpp"
#include "scenarios/fitting/measured_collective.hpp"

namespace orrery::scenarios {

/// A row on its machine as the catalogue has it. Both outlive it.
struct CollectiveSample {
  const MeasuredCollective* row = nullptr;
  const hardware::Cluster* machine = nullptr;
};

/// What is put in place of the catalogue's constants; nothing: theirs.
struct CollectiveSystem {
  std::optional<double> base, step;              // seconds
  std::vector<hardware::GroupRate> group_rates;  // PCIe only
  std::optional<double> network, half_size;      // seconds
  std::optional<double> growth, efficiency, gather_efficiency;
  bool borrowed = false;  // a network's constants are those of others

  std::vector<std::pair<std::string, double>> parameters() const;
};

/// Seconds of a call by the cost model with these constants. The algorithm and the protocol are the
/// fastest, or those that the row names.
double modelled(const CollectiveSample& sample, const CollectiveSystem& system);

/// Base and step from rows inside one domain. Fewer than 8 rows: the catalogue's.
CollectiveSystem fit_domain(const std::vector<CollectiveSample>& samples);
/// A fabric's constants from rows across domains, its domain's fitted before. Fewer than 8: theirs.
CollectiveSystem fit_fabric(const std::vector<CollectiveSample>& samples, CollectiveSystem domain);

}  // namespace orrery::scenarios
