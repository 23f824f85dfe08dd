#include "models/network/collectives/wire_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"

namespace orrery::models::collectives {
namespace {

/// Share of `size` that crosses a GPU's links in one direction.
double share_inside(const CostCall& call) {
  const bool in_switch =
      call.collective == Collective::all_reduce && call.cluster.node.switch_reduces;
  return in_switch ? 1 : bus_factor(call.collective, call.group.ranks);
}

/// Share of `size` that crosses the NICs of the node with the fewest ranks in one direction.
double share_across(const CostCall& call) {
  const double n = call.group.ranks, nodes = call.group.nodes, p = call.group.ranks_per_node;
  switch (call.collective) {
    case Collective::all_reduce: {
      const bool even = call.group.ranks == call.group.nodes * call.group.ranks_per_node;
      return call.cluster.fabric.switch_reduces || !even ? 1 : 2 * (nodes - 1) / nodes;
    }
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return (n - p) / n;
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return p * (n - p) / n;
    case Collective::gather:
    case Collective::scatter:
      return (n - call.ranks_inside()) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return 1;
  }
  throw ContractError{"a collective outside its enumeration"};
}

/// Bytes per second of the NICs near the group's ranks on a node.
double rate_across(const CostCall& call) {
  const hardware::NodeType& node = call.cluster.node;
  const double nic = call.cluster.nic_bandwidth().count();
  double near = std::max(1.0, static_cast<double>(node.nics) / node.gpus);
  for (const auto& nics : node.gpu_nics) near = std::max(near, static_cast<double>(nics.size()));
  const int groups = call.sharing == LinkSharing::alone ? 1 : call.group.groups_per_node;
  return std::min(nic * node.nics / groups, call.group.ranks_per_node * near * nic);
}

double rate_inside(const CostCall& call) {
  if (call.cluster.node.scale_up == hardware::ScaleUp::shared_memory) {
    return std::numeric_limits<double>::infinity();
  }
  const bool stated = !call.cluster.collectives.group_rates.empty();
  return link_rate(call.cluster) * (stated ? 1 : reach(call.cluster, call.group.ranks));
}

}  // namespace

Time wire_bound(const CostCall& call) {
  if (call.group.ranks == 1) return Time{};
  const double seconds = call.group.nodes > 1
                             ? call.bytes() * share_across(call) / rate_across(call)
                             : call.bytes() * share_inside(call) / rate_inside(call);
  return nearest_count<Time>(std::floor(seconds * 1e12));
}

void keep_to_wire(const CostCall& call, CollectiveTime& priced) {
  const Time least = wire_bound(call);
  Time& busy = call.group.nodes > 1 ? priced.links.nic : priced.links.nvlink;
  priced.time = std::max(priced.time, least);
  priced.fluid = std::max(priced.fluid, least);
  priced.latency = priced.time - priced.fluid;
  busy = std::max(busy, least);
}

}  // namespace orrery::models::collectives
