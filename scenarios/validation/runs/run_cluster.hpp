#pragma once
// Builds the cluster of a published run from its GPU and the few words that it states on links.

#include <map>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "scenarios/validation/runs/measured_run.hpp"

namespace orrery::scenarios {

/// The catalogue's site of that name, or a neutral one if it has none.
hardware::Site site_named(const std::string& name);

/// Builds the clusters of many runs; expands equal nodes only once.
class RunClusters {
 public:
  /// The cluster with as many nodes as the run's GPUs fill. A rack such as NVL72 is one domain of
  /// all the run's GPUs, or of the largest part of the rack that divides them. What the run does
  /// not state is taken from the GPU's usual node.
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
