#pragma once
// What the first half of a cluster's nodes can send to the other half at once.

#include <optional>

#include "models/network/fabric/fabric_graph.hpp"

namespace orrery::scenarios {

/// The least cut between the NICs of the first and of the last half of the nodes, in one direction,
/// by the best routes that there are; nothing for one node, or for over 200,000 links.
std::optional<Bandwidth> bisection(const models::FabricGraph& graph, std::size_t nodes);

}  // namespace orrery::scenarios
