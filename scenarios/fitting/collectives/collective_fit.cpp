#include "scenarios/fitting/collectives/collective_fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "hardware/fitting/minimise.hpp"
#include "scenarios/fitting/kernels/kernel_fit.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t fewest_collectives = 8;

/// The cluster with a system's constants in place of the catalogue's.
hardware::Cluster with_constants(const hardware::Cluster& machine, const CollectiveSystem& system) {
  hardware::Cluster cluster = machine;
  auto& constants = cluster.collectives;
  if (system.base) constants.base = from_seconds(*system.base);
  if (system.step) constants.step = from_seconds(*system.step);
  if (!system.group_rates.empty()) constants.group_rates = system.group_rates;
  if (system.network) constants.network = from_seconds(*system.network);
  if (system.half_size) constants.half_size = from_seconds(*system.half_size);
  if (system.growth) constants.growth = *system.growth;
  if (system.efficiency) cluster.fabric.efficiency = *system.efficiency;
  if (system.gather_efficiency) cluster.fabric.gather_efficiency = *system.gather_efficiency;
  return cluster;
}

/// The algorithm with this NCCL name; empty if there is none.
std::string_view algorithm_named(const std::string& word) {
  for (const auto& [name, algorithm] : models::builtin_algorithms()) {
    if (!word.empty() && algorithm.nccl == word) return name;
  }
  return {};
}

double modelled_seconds(const MeasuredCollective& row, const hardware::Cluster& cluster) {
  const auto times = models::candidates(*row.collective, row.size, shape_of(row), cluster);
  const std::string_view named = algorithm_named(row.algorithm);
  std::optional<Time> fastest;
  std::optional<Time> as_named;
  for (const models::CollectiveTime& one : times) {
    if (!fastest || one.time < *fastest) fastest = one.time;
    if (!named.empty() && one.algorithm == named && (!as_named || one.time < *as_named)) {
      as_named = one.time;
    }
  }
  return std::max(seconds(as_named ? *as_named : *fastest), 1e-9);
}

/// Errors of the samples with trial constants; consecutive samples of one machine share a cluster.
class Trial {
 public:
  explicit Trial(const std::vector<CollectiveSample>& samples) : samples_{samples} {}

  std::vector<double> log_errors(const CollectiveSystem& system) const {
    std::vector<double> errors;
    errors.reserve(samples_.size());
    const hardware::Cluster* last = nullptr;
    hardware::Cluster cluster;
    for (const CollectiveSample& sample : samples_) {
      if (sample.machine != last) {
        cluster = with_constants(*sample.machine, system);
        last = sample.machine;
      }
      errors.push_back(std::log(modelled_seconds(*sample.row, cluster) / *sample.row->seconds));
    }
    return errors;
  }

 private:
  const std::vector<CollectiveSample>& samples_;
};

/// The GPU counts seen on PCIe. Each has two unknowns after base and step: the rates of a ring and
/// of LL, as log GB/s.
std::vector<int> pcie_sizes(const std::vector<CollectiveSample>& samples) {
  std::set<int> sizes;
  for (const CollectiveSample& sample : samples) {
    if (sample.machine->node.scale_up == hardware::ScaleUp::pcie) sizes.insert(sample.row->gpus);
  }
  return {sizes.begin(), sizes.end()};
}

CollectiveSystem domain_from(const std::vector<double>& p, const std::vector<int>& sizes) {
  CollectiveSystem system;
  system.base = std::exp(p[0]);
  system.step = std::exp(p[1]);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    system.group_rates.push_back({.ranks = sizes[i],
                                  .ring = Bandwidth{1e9 * std::exp(p[2 + 2 * i])},
                                  .low_latency = Bandwidth{1e9 * std::exp(p[3 + 2 * i])}});
  }
  return system;
}

/// Which network constants the rows determine: all-to-alls alone determine no ramp, large messages
/// no latency.
struct Determined {
  bool latency = false;
  bool ramp = false;
  bool gathers = false;
};

Determined determined_by(const std::vector<CollectiveSample>& samples) {
  using models::Collective;
  constexpr Bytes small = 256_KiB;  // beyond, latency is less than a third of a public run's time
  Determined found;
  for (const CollectiveSample& sample : samples) {
    const Collective collective = *sample.row->collective;
    const bool gathers =
        collective == Collective::all_gather || collective == Collective::reduce_scatter;
    found.latency = found.latency || sample.row->size <= small;
    found.gathers = found.gathers || gathers;
    found.ramp = found.ramp || gathers || collective == Collective::all_reduce;
  }
  return found;
}

CollectiveSystem fabric_from(const std::vector<double>& p, CollectiveSystem system,
                             Determined by_rows) {
  if (by_rows.latency) system.network = std::exp(p[0]);
  system.efficiency = p[1];
  if (by_rows.ramp) {
    system.half_size = std::exp(p[2]);
    system.growth = std::exp(p[3]);
  }
  if (by_rows.gathers) system.gather_efficiency = p[4];
  return system;
}

}  // namespace

std::vector<std::pair<std::string, double>> CollectiveSystem::parameters() const {
  std::vector<std::pair<std::string, double>> named;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) named.emplace_back(name, *value);
  };
  add("base_s", base);
  add("step_s", step);
  for (const hardware::GroupRate& rate : group_rates) {
    named.emplace_back("ring_of_" + std::to_string(rate.ranks) + "_bytes_per_s", rate.ring.count());
  }
  add("network_s", network);
  add("half_size_s", half_size);
  add("growth", growth);
  add("efficiency", efficiency);
  add("gather_efficiency", gather_efficiency);
  return named;
}

double modelled(const CollectiveSample& sample, const CollectiveSystem& system) {
  return modelled_seconds(*sample.row, with_constants(*sample.machine, system));
}

CollectiveSystem fit_domain(const std::vector<CollectiveSample>& samples) {
  if (samples.size() < fewest_collectives) return {};
  const std::vector<int> sizes = pcie_sizes(samples);
  std::vector<hardware::Unknown> unknown{{std::log(7e-6), std::log(0.5e-6), std::log(300e-6)},
                                         {std::log(1e-6), std::log(0.05e-6), std::log(50e-6)}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    unknown.push_back({std::log(10.0), std::log(0.5), std::log(64.0)});
    unknown.push_back({std::log(8.0), std::log(0.5), std::log(64.0)});
  }
  const Trial trial{samples};
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    return trial.log_errors(domain_from(p, sizes));
  };
  return domain_from(hardware::least_squares(unknown, residuals, log_scale), sizes);
}

CollectiveSystem fit_fabric(const std::vector<CollectiveSample>& samples, CollectiveSystem domain) {
  if (samples.size() < fewest_collectives) return domain;
  const Determined by_rows = determined_by(samples);
  // An all-to-all reaches 0.8 of `efficiency`: at 1.25 it runs at line rate.
  const double fastest = by_rows.ramp ? 1 : 1.25;
  std::vector<hardware::Unknown> unknown{{std::log(20e-6), std::log(1e-6), std::log(5e-3)},
                                         {0.9, 0.05, fastest}};
  if (by_rows.ramp) {
    unknown.push_back({std::log(100e-6), std::log(1e-6), std::log(20e-3)});
    unknown.push_back({std::log(0.08), std::log(0.005), 0});
  }
  if (by_rows.gathers) unknown.push_back({0.8, 0.05, 1});
  const Trial trial{samples};
  const hardware::Residuals residuals = [&](const std::vector<double>& p) {
    return trial.log_errors(fabric_from(p, domain, by_rows));
  };
  return fabric_from(hardware::least_squares(unknown, residuals, log_scale), domain, by_rows);
}

}  // namespace orrery::scenarios
