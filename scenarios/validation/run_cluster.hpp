#pragma once
// The cluster that a published run names by its GPU and a few words on its links.

#include <map>
#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "scenarios/validation/measured_run.hpp"

namespace orrery::scenarios {

/// The catalogue's site of that name; of another name a neutral one.
hardware::Site site_named(const std::string& name);

/// Clusters of many runs; equal nodes are expanded once.
class RunClusters {
 public:
  /// A cluster with as many nodes as the run's GPUs fill. A rack such as NVL72 is one domain of
  /// the run's GPUs, or of the largest part of the rack that divides them. What the run does not
  /// state is that of the GPU's usual node.
  /// assumptions  gains one sentence for each thing that the run does not state
  /// Errors       an unknown GPU, GPUs that fill no whole number of nodes: InputError
  hardware::Cluster of(const MeasuredRun& run, std::vector<std::string>& assumptions);

 private:
  struct KnownCluster {
    hardware::Cluster cluster;
    std::vector<std::string> assumptions;
  };
  std::map<std::string, KnownCluster> known_;
};

}  // namespace orrery::scenarios
