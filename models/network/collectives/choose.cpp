// Which algorithms could run a collective, and the fastest of them.

#include <algorithm>

#include "models/network/collectives/measured.hpp"
#include "models/network/collectives/terms.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

using collectives::CostCall;

void check(Collective collective, Bytes size, const GroupShape& group,
           const hardware::Cluster& cluster) {
  ensure(size >= Bytes{0}, "a collective has no negative size");
  ensure(group.ranks >= 1 && group.nodes >= 1 && group.nodes <= group.ranks &&
             group.ranks_per_node >= 1 && group.groups_per_node >= 1 && group.node_stride >= 1,
         "a group has at least one rank on each of its nodes");
  ensure((group.ranks + group.nodes - 1) / group.nodes <= cluster.node.gpus,
         "a group has no more ranks on a node than the node has GPUs");
  ensure(collective != Collective::send_receive || group.ranks <= 2, "a message has two ends");
  ensure(cluster.fabric.nodes_per_leaf >= 1 && cluster.fabric.oversubscription >= 1,
         "a leaf switch has a node, and no more uplinks than downlinks");
}

std::vector<CollectiveTime> reductions_and_gathers(const CostCall& call) {
  std::vector<CollectiveTime> times;
  if (call.group.nodes > 1) {
    if (call.collective == Collective::all_reduce) {
      times.push_back(collectives::tree_across_nodes(call));
    }
    times.push_back(collectives::ring_across_nodes(call));
    return times;
  }
  times = collectives::ring_in_node(call);
  if (const auto switched = collectives::nvls(call)) times.push_back(*switched);
  return times;
}

}  // namespace

std::vector<CollectiveTime> candidates(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster) {
  check(collective, size, group, cluster);
  if (group.ranks == 1 || size == Bytes{0}) {
    return {collectives::finish({}, Algorithm::direct, std::nullopt)};
  }
  const CostCall call{.collective = collective, .size = size, .group = group, .cluster = cluster};
  switch (collective) {
    case Collective::all_to_all:
      return {collectives::all_to_all(call)};
    case Collective::send_receive:
      return {collectives::point_to_point(call)};
    default:
      return reductions_and_gathers(call);
  }
}

CollectiveTime price(Collective collective, Bytes size, const GroupShape& group,
                     const hardware::Cluster& cluster) {
  check(collective, size, group, cluster);
  if (group.ranks > 1 && size > Bytes{0}) {
    const auto measured = collectives::measured_time({collective, size, group, cluster});
    if (measured) return *measured;
  }
  const auto times = candidates(collective, size, group, cluster);
  return *std::min_element(times.begin(), times.end(),
                           [](const auto& a, const auto& b) { return a.time < b.time; });
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return 1;
  }
  throw ContractError{"a collective outside its enumeration"};
}

std::string_view name(Algorithm algorithm) {
  constexpr std::string_view names[] = {"ring", "tree", "nvls", "nvls_tree", "direct"};
  return names[static_cast<int>(algorithm)];
}

std::string_view name(Protocol protocol) {
  constexpr std::string_view names[] = {"ll", "ll128", "simple"};
  return names[static_cast<int>(protocol)];
}

}  // namespace orrery::models
