#pragma once
// Names for what shared links cost a step: which links were over capacity, which traffic lost time
// on them, and to which other traffic.

#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "models/prediction/network/network.hpp"

namespace orrery::models {

/// Names of links between nodes, and of those between GPUs and NICs inside them.
struct NamedLinks {
  const FabricGraph& fabric;
  InsideLinks inside;

  std::string name(std::uint32_t link) const {
    return link < fabric.links() ? fabric.name(LinkId{link}) : inside.name(link);
  }
};

/// Links whose traffic demanded more than their capacity, longest first.
std::vector<FullLinks> links_of(const NamedLinks& named, const Traffic& traffic,
                                const NetworkTimes& times);

/// Losses of our job's traffic, most first: of all flow classes of one name, the one that lost
/// most.
std::vector<TrafficLoss> losses_of(const Traffic& traffic, const NetworkTimes& times);

}  // namespace orrery::models
