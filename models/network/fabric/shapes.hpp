#pragma once
// Which topology of sim/topology/ a cluster's fabric is, with every count that it needs.

#include "hardware/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// Devices are ports, in the order of the shape: FabricGraph knows which is whose. On rails the
/// last unit's leaves may have places without a port.
/// Errors  more than 2^24 links: InputError
Interconnect fabric_shape(const hardware::Cluster& cluster);

}  // namespace orrery::models
