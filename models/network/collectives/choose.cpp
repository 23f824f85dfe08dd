// Prices a collective: the algorithms that could run it, and the choice among them.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/network/collectives/carried.hpp"
#include "models/network/collectives/measured.hpp"
#include "models/network/collectives/nccl_settings.hpp"
#include "models/network/collectives/terms.hpp"
#include "models/network/collectives/wire_bound.hpp"
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

bool allowed(const CollectiveTime& one, const CollectiveChoice& choice) {
  return !choice.protocol || !one.protocol || *one.protocol == *choice.protocol;
}

/// With fewer channels than NCCL opens by itself, the rate falls in proportion.
void limit_channels(CollectiveTime& one, int most) {
  if (one.channels <= most) return;
  const double slower = static_cast<double>(one.channels) / most;
  one.fluid = scaled(one.fluid, slower);
  one.time = one.latency + one.fluid;
  one.links = {.nic = scaled(one.links.nic, slower), .nvlink = scaled(one.links.nvlink, slower)};
  one.wire = one.wire * (1 / slower);
  one.channels = most;
}

/// Flows that leave by one NIC. Ring: `flows`. Tree: twice as many (a node has two children in one
/// of the two trees and none in the other). Pairs: `flows` for each rank at the NIC and each peer
/// on another node.
double flows_on_nic(const CostCall& call, TrafficPattern pattern, int flows) {
  switch (pattern) {
    case TrafficPattern::tree:
      return 2.0 * flows;
    case TrafficPattern::all_pairs:
    case TrafficPattern::star: {
      const double at_nic = call.group.ranks_per_node / collectives::nics_used(call);
      return std::max(1.0, at_nic) * flows * (call.group.ranks - call.ranks_inside());
    }
    default:
      return flows;
  }
}

void add_times(const std::string& name, const CollectiveAlgorithm& algorithm, const CostCall& call,
               const CollectiveChoice& choice, std::vector<CollectiveTime>& all) {
  const auto count = collectives::channels_of(call, algorithm.pattern);
  for (CollectiveTime& one : algorithm.times(call)) {
    if (!allowed(one, choice)) continue;
    one.algorithm = name;
    one.pattern = call.group.nodes > 1 ? algorithm.pattern : TrafficPattern::none;
    one.channels = count.channels;
    one.flows = count.flows;
    if (one.flows > 0) one.wire = one.wire * (1 / flows_on_nic(call, one.pattern, one.flows));
    if (choice.channels) limit_channels(one, *choice.channels);
    all.push_back(one);
  }
}

/// Does the caller restrict the choice? Then no measured table is used.
bool chosen(Collective collective, const CollectivePricing& pricing) {
  const CollectiveChoice& choice = pricing.choice;
  return !choice.algorithm.empty() || choice.protocol || choice.channels ||
         (pricing.nccl && pricing.nccl->restricts(collective));
}

[[noreturn]] void refuse(Collective collective, const CollectivePricing& pricing,
                         const GroupShape& group, const hardware::Cluster& cluster) {
  CollectivePricing open = pricing;
  open.choice = {};
  std::string usable;
  for (const auto& [name, algorithm] : *pricing.algorithms) {
    open.choice.algorithm = name;
    if (candidates(collective, Bytes{1}, group, cluster, open).empty()) continue;
    usable += (usable.empty() ? "" : " ") + name;
  }
  const CollectiveChoice& choice = pricing.choice;
  std::string asked{choice.algorithm.empty() ? "" : "algorithm "};
  asked += choice.algorithm;
  if (choice.protocol) {
    asked += asked.empty() ? "protocol " : " with protocol ";
    asked += name(*choice.protocol);
  }
  throw InputError{
      fmt::format("{} does not support {} of {} ranks on {} of this cluster; usable: {}", asked,
                  name(collective), group.ranks,
                  group.nodes == 1 ? "1 node" : fmt::format("{} nodes", group.nodes), usable)};
}

}  // namespace

std::vector<CollectiveTime> candidates(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster,
                                       const CollectivePricing& pricing) {
  check(collective, size, group, cluster);
  const CollectiveChoice& choice = pricing.choice;
  if (!choice.algorithm.empty()) pricing.algorithms->at(choice.algorithm);
  const CostCall call{.collective = collective,
                      .size = size,
                      .group = group,
                      .cluster = cluster,
                      .sharing = pricing.sharing,
                      .copies = pricing.copies};
  if (group.ranks == 1 || size == Bytes{0}) return {collectives::finish(call, {}, std::nullopt)};
  std::vector<CollectiveTime> all;
  for (const auto& [name, algorithm] : *pricing.algorithms) {
    const bool asked =
        choice.algorithm.empty() ? algorithm.use == AlgorithmUse::usual : choice.algorithm == name;
    if (asked && algorithm.performs(collective)) add_times(name, algorithm, call, choice, all);
  }
  return all;
}

CollectiveTime price(Collective collective, Bytes size, const GroupShape& group,
                     const hardware::Cluster& cluster, const CollectivePricing& pricing) {
  const CostCall call{.collective = collective,
                      .size = size,
                      .group = group,
                      .cluster = cluster,
                      .sharing = pricing.sharing};
  const bool by_tables = !cluster.measured_collectives.empty() && group.ranks > 1 &&
                         size > Bytes{0} && !chosen(collective, pricing);
  std::optional<CollectiveTime> measured;
  if (by_tables) {
    check(collective, size, group, cluster);
    measured = collectives::measured_time(call);
    if (measured && group.nodes == 1) return *measured;
  }
  CollectivePricing decided = pricing;
  if (pricing.nccl) decided.choice = tuned_choice(collective, size, group, cluster, pricing);
  auto times = candidates(collective, size, group, cluster, decided);
  if (times.empty()) refuse(collective, decided, group, cluster);
  if (by_tables && !measured) collectives::carry_over(call, times);
  CollectiveTime best = *std::ranges::min_element(
      times, [](const auto& a, const auto& b) { return a.time < b.time; });
  if (!measured) {
    if (by_tables) collectives::keep_to_wire(call, best);
    return best;
  }
  // The table has a time but no algorithm: flows are those of the algorithm that would be chosen.
  measured->pattern = best.pattern;
  measured->flows = best.flows;
  measured->channels = best.channels;
  if (best.flows > 0) {
    measured->wire = measured->wire * (1 / flows_on_nic(call, best.pattern, best.flows));
  }
  return *measured;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return 1;
  }
  throw ContractError{"a collective outside its enumeration"};
}

}  // namespace orrery::models
