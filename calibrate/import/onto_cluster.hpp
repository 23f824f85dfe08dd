#pragma once
// A log of another machine, held against the cluster that it is said to be of.

#include "calibrate/import/import.hpp"
#include "hardware/cluster.hpp"

namespace orrery::calibrate {

/// Checks a log's GPUs, and fills in on how many nodes its collectives ran where it lists not all
/// hosts: as few as hold its ranks. Notes what was taken for granted.
/// Errors  GPUs that the cluster does not have: `nccl.log: measured on NVIDIA H100 80GB HBM3
///         (h100-sxm-80gb), the cluster has a100-sxm-80gb; accepted: ...`
void lay_onto(const hardware::Cluster& cluster, Imported& log);

}  // namespace orrery::calibrate
