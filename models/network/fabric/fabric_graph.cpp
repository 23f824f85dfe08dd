#include "models/network/fabric/fabric_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/fabric/shapes.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

using hardware::FabricKind;

FabricGraph::FabricGraph(const hardware::Cluster& cluster)
    : kind_{cluster.fabric.kind},
      routing_{cluster.fabric.routing},
      direct_{cluster.fabric.direct},
      nodes_{static_cast<std::size_t>(cluster.nodes)},
      nics_{static_cast<std::size_t>(cluster.node.nics)},
      nodes_per_leaf_{static_cast<std::size_t>(cluster.fabric.nodes_per_leaf)} {
  ensure(kind_ != FabricKind::none && nics_ > 0, "a cluster's network has NICs and a fabric");
  places_per_leaf_ = hardware::has_rails(kind_) ? nodes_per_leaf_ : nodes_per_leaf_ * nics_;
  if (kind_ == FabricKind::rail_only) {
    places_per_rail_ = (nodes_ + nodes_per_leaf_ - 1) / nodes_per_leaf_ * nodes_per_leaf_;
  }
  if (routing_ == hardware::Routing::ecmp) choice_ = PathChoice::by_hash;
  if (routing_ == hardware::Routing::adaptive) choice_ = PathChoice::least_loaded;
  built_ = fabric_shape(cluster);
  rails_alike_ = are_rails_alike(cluster.fabric.tree.leaves_per_pod);
}

/// With up to two levels of switches every link belongs to a leaf, and so to one rail; D-mod-k
/// shifts the choice of spines by the same number for each rail, and a trunk leaves no choice. With
/// three levels the spines of a pod serve all rails: rails stay separate only where the
/// divisibility below gives each of them cores of its own.
bool FabricGraph::are_rails_alike(int leaves_per_pod) const {
  const bool steady =
      routing_ == hardware::Routing::d_mod_k || routing_ == hardware::Routing::spray;
  if (!hardware::has_rails(kind_) || !steady || built_.tiers.empty()) return false;
  if (built_.tiers.size() <= 2) return true;
  const std::size_t spines = built_.tiers[1].each, cores = built_.tiers[2].each / spines;
  if (kind_ == FabricKind::rail_only) return places_per_rail_ % spines == 0;
  return nodes_per_leaf_ % spines == 0 && static_cast<std::size_t>(leaves_per_pod) % nics_ == 0 &&
         cores % (nics_ * (nodes_per_leaf_ / spines)) == 0;
}

void FabricGraph::check(std::size_t port) const {
  ensure(port < ports(), "a route joins two ports of its fabric");
}

/// Index of a port's device in the topology. Rail-optimised: ordered by unit of nodes, then by rail
/// (one leaf each); rail-only: ordered by rail.
std::size_t FabricGraph::place(std::size_t port) const {
  if (!hardware::has_rails(kind_)) return port;
  const std::size_t node = port / nics_;
  const std::size_t rail = port % nics_;
  if (kind_ == FabricKind::rail_only) return rail * places_per_rail_ + node;
  const std::size_t leaf = node / nodes_per_leaf_ * nics_ + rail;
  return leaf * nodes_per_leaf_ + node % nodes_per_leaf_;
}

std::size_t FabricGraph::port_at(std::size_t place) const {
  if (!hardware::has_rails(kind_)) return place;
  if (kind_ == FabricKind::rail_only) {
    return port(place % places_per_rail_, place / places_per_rail_);
  }
  const std::size_t leaf = place / nodes_per_leaf_;
  return port(leaf / nics_ * nodes_per_leaf_ + place % nodes_per_leaf_, leaf % nics_);
}

bool FabricGraph::joined(std::size_t from, std::size_t to) const {
  return kind_ != FabricKind::rail_only || from % nics_ == to % nics_;
}

void FabricGraph::route(const PortFlow& flow, Route& route) const {
  check(flow.from);
  check(flow.to);
  ensure(joined(flow.from, flow.to), "rails that never meet join ports of one rail only");
  if (choice_ == PathChoice::least_loaded && flow.loads.size() != links()) {
    throw InputError{"/cluster/fabric/routing",
                     "adaptive routing needs the load of every link at the start of each flow, "
                     "which this evaluation does not know; expected \"spray\" (its idealised "
                     "form), \"d-mod-k\" or \"ecmp\", or --network static"};
  }
  route.clear();
  built_.append({.from = place(flow.from),
                 .to = place(flow.to),
                 .choice = choice_,
                 .flow = flow.flow,
                 .loads = flow.loads},
                route);
}

void FabricGraph::route_from_leaf(std::size_t leaf, std::size_t to, Route& route) const {
  check(to);
  ensure(leaf < leaves() && by_destination(), "a route from a leaf is known by its destination");
  route.clear();
  if (leaf == leaf_of(to)) {
    route.push_back(into(to));
    return;
  }
  built_.append({.from = leaf * places_per_leaf_, .to = place(to)}, route);
  route.erase(route.begin());
}

std::vector<LinkId> FabricGraph::links_of(Vertex vertex) const {
  std::vector<LinkId> found;
  const auto& links = built_.topology.links();
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (links[l].from == vertex || links[l].to == vertex) {
      found.push_back(LinkId{static_cast<std::uint32_t>(l)});
    }
  }
  return found;
}

Time message_latency(const hardware::Cluster& cluster, std::size_t cables) {
  const auto& fabric = cluster.fabric;
  if (!fabric.hop_latency) return cluster.collectives.network;
  const auto more = static_cast<std::int64_t>(cables) - fabric.longest_path;
  return std::max(Time{}, cluster.collectives.network + *fabric.hop_latency * more);
}

}  // namespace orrery::models
