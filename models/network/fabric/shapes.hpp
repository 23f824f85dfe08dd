#pragma once
// Builds the topology of a cluster's fabric from its description, with sim/topology/.

#include "hardware/cluster/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// Devices are ports, in the topology's own order, which FabricGraph maps to nodes and NICs. With
/// rails, the last unit's leaves may have places without a port.
/// Errors  more than 2^24 links: InputError
Interconnect fabric_shape(const hardware::Cluster& cluster);

}  // namespace orrery::models
