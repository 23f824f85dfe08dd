#pragma once
// Bisection bandwidth of a cluster's network.

#include <optional>

#include "models/network/fabric/fabric_graph.hpp"

namespace orrery::scenarios {

/// The minimum cut (maximum flow) between the NICs of the first and of the last half of the nodes,
/// in one direction, with ideal routing; nothing for one node, or for over 200,000 links.
std::optional<Bandwidth> bisection(const models::FabricGraph& graph, std::size_t nodes);

}  // namespace orrery::scenarios
