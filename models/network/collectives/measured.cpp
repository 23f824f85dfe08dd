#include "models/network/collectives/measured.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/network/collectives/terms.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {
namespace collectives {
namespace {

using hardware::CollectiveTable;

double steps(Collective collective, int ranks) {
  if (collective == Collective::send_receive) return 1;
  return collective == Collective::all_reduce ? 2.0 * (ranks - 1) : ranks - 1;
}

/// The table for the same number of ranks, otherwise the nearest by the ratios of ranks and nodes
/// (the first of equally near ones).
const CollectiveTable* table_for(const CostCall& call) {
  const CollectiveTable* best = nullptr;
  double best_distance = 0;
  for (const CollectiveTable& table : call.cluster.measured_collectives) {
    if (table.operation != name(call.collective)) continue;
    if ((table.nodes > 1) != (call.group.nodes > 1)) continue;
    const double distance =
        std::abs(std::log(static_cast<double>(table.ranks) / call.group.ranks)) +
        std::abs(std::log(static_cast<double>(table.nodes) / call.group.nodes));
    if (!best || distance < best_distance) {
      best = &table;
      best_distance = distance;
    }
  }
  return best;
}

/// Share of the group's NIC rate that is left while siblings use the same NICs.
double share_left(const CostCall& call) {
  if (call.group.nodes == 1 || call.group.groups_per_node == 1) return 1;
  CostCall alone = call;
  alone.group.groups_per_node = 1;
  return network_share(call) / network_share(alone);
}

}  // namespace

std::optional<CollectiveTime> measured_time(const CostCall& call) {
  const CollectiveTable* table = table_for(call);
  if (!table) return std::nullopt;
  const int ranks = call.group.ranks;
  const Time latency = table->times.latency();
  const double hops = steps(call.collective, ranks) / steps(call.collective, table->ranks);
  const double traffic =
      bus_factor(call.collective, ranks) / bus_factor(call.collective, table->ranks);
  const Time moving = scaled(table->times.at(call.size) - latency, traffic / share_left(call));
  CollectiveTime result;
  result.latency = scaled(latency, hops);
  result.fluid = moving;
  result.time = result.latency + moving;
  result.limited_by = "measured";
  (call.group.nodes > 1 ? result.links.nic : result.links.nvlink) = moving;
  if (call.group.nodes > 1) {
    CostCall alone = call;
    alone.sharing = LinkSharing::alone;
    result.wire = Bandwidth{network_share(alone) / nics_used(call) * share_left(call)};
  }
  return result;
}

}  // namespace collectives

const hardware::CollectiveTable* table_of(Collective collective, const GroupShape& group,
                                          const hardware::Cluster& cluster) {
  return collectives::table_for({collective, Bytes{1}, group, cluster});
}

std::optional<std::string> table_note(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster) {
  if (group.ranks == 1 || size == Bytes{0}) return std::nullopt;
  const collectives::CostCall call{collective, size, group, cluster};
  const hardware::CollectiveTable* table = collectives::table_for(call);
  if (!table) return std::nullopt;
  if (table->ranks != group.ranks || table->nodes != group.nodes) {
    return fmt::format("{} of {} ranks: scaled from the table of {} ranks by steps and traffic",
                       name(collective), group.ranks, table->ranks);
  }
  if (table->times.covers(size)) return std::nullopt;
  return fmt::format("{} of {} ranks: {} is outside its table ({} to {})", name(collective),
                     group.ranks, format(size), format(table->times.points().front().first),
                     format(table->times.points().back().first));
}

}  // namespace orrery::models
