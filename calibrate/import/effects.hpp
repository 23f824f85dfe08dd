#pragma once
// What imported samples change in the cluster that is written, and what they do not: a sample that
// prices nothing is reported, never dropped silently.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/import/import.hpp"
#include "hardware/cluster/cluster.hpp"

namespace orrery::calibrate {

/// The rate of one NIC: the best one-way bandwidth that perftest reports for 64 KiB, its default,
/// or more.
struct NicRate {
  std::string name;  // "mlx5_5", with the log's name where several logs name the same device
  Bandwidth rate{};
};
std::vector<NicRate> nic_rates(const std::vector<Imported>& logs);

/// The median of the NICs' rates, nothing without one: a slow NIC is a perturbation of a scenario,
/// not a property of the cluster.
std::optional<Bandwidth> usual_nic_rate(const std::vector<NicRate>& nics);

/// One sentence for each NIC more than 5 % below the median, with the perturbation that states it.
std::vector<std::string> slow_nics(const std::vector<NicRate>& nics);

/// The quantities of which no sample prices anything, one sentence for each reason. Quantities of
/// perftest price something if the cluster that is written has NICs: `sets_nics`.
std::vector<std::string> unpriced_samples(const std::vector<Sample>& samples, bool sets_nics);

}  // namespace orrery::calibrate
