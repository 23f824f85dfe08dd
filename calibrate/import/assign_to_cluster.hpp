#pragma once
// Checks a log of another machine against the cluster that it is said to come from.

#include "calibrate/import/import.hpp"
#include "hardware/cluster/cluster.hpp"

namespace orrery::calibrate {

/// Checks a log's GPUs, and sets the number of nodes of its collectives if it does not list all
/// hosts: the fewest that hold its ranks. Adds a note for each assumption.
/// Errors  GPUs that the cluster does not have: `nccl.log: measured on NVIDIA H100 80GB HBM3
///         (h100-sxm-80gb), the cluster has a100-sxm-80gb; accepted: ...`; more ranks or nodes
///         than it has
void assign_to_cluster(const hardware::Cluster& cluster, Imported& log);

}  // namespace orrery::calibrate
