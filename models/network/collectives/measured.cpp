#include "models/network/collectives/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/network/collectives/carried.hpp"
#include "models/network/collectives/wire_bound.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {
namespace collectives {
namespace {

using hardware::CollectiveTable;

double steps(Collective collective, int ranks) {
  if (collective == Collective::send_receive) return 1;
  return collective == Collective::all_reduce ? 2.0 * (ranks - 1) : ranks - 1;
}

/// How far a table's shape is from the call's: by ranks per node, then by ranks.
std::pair<double, double> distance(const CostCall& call, const CollectiveTable& table,
                                   Collective operation) {
  const GroupShape shape = measured_call(call, table, operation).group;
  const auto apart = [](int a, int b) { return std::abs(std::log(static_cast<double>(a) / b)); };
  // Inside a node all ranks are on it.
  const double per_node =
      call.group.nodes == 1 ? 0 : apart(shape.ranks_per_node, call.group.ranks_per_node);
  return {per_node, apart(shape.ranks, call.group.ranks) + apart(shape.nodes, call.group.nodes)};
}

/// What scales with the latency, and what with the rest.
struct Scale {
  double latency = 1, moving = 1;
};

Scale scale_inside(const CostCall& call) {
  double bus = ring_rate(call.cluster, call.group.ranks);
  const double factor = bus_factor(call.collective, call.group.ranks);
  if (call.collective == Collective::all_reduce && nvls_runs(call.cluster, call.group.ranks)) {
    bus = std::max(bus, factor * call.cluster.collectives.switch_rate.count());
  }
  return {.latency = steps(call.collective, call.group.ranks), .moving = factor / bus};
}

Scale scale_of(const CostCall& call) {
  if (call.group.nodes == 1) return scale_inside(call);
  return {.latency = seconds(modelled(call, Bytes{1}).time),
          .moving = seconds(modelled(call, large_message).fluid)};
}

/// Of a table's times to those of this call; 1 where the shapes are the same.
Scale scale_between(const CostCall& call, const CollectiveTable& table) {
  const CostCall measured = measured_call(call, table, call.collective);
  if (measured.group == call.group) return {};
  const Scale to = scale_of(call), from = scale_of(measured);
  return {.latency = to.latency / from.latency, .moving = to.moving / from.moving};
}

/// Rate of one of the group's NICs that is left while siblings use it, too.
Bandwidth nic_rate(const CostCall& call) {
  CostCall alone = call;
  alone.group.groups_per_node = 1;
  const double left = network_share(call) / network_share(alone);
  alone.sharing = LinkSharing::alone;
  return Bandwidth{network_share(alone) / nics_used(call) * left};
}

CollectiveTime scaled_time(const CostCall& call, const CollectiveTable& table) {
  const Scale scale = scale_between(call, table);
  const Time measured = table.times.at(call.size);
  // A log's first row is often slower than those after it.
  const Time latency = std::min(table.times.latency(), measured);
  CollectiveTime result;
  result.latency = scaled(latency, scale.latency);
  result.fluid = scaled(measured - latency, scale.moving);
  result.time = result.latency + result.fluid;
  result.limited_by = "measured";
  (call.group.nodes > 1 ? result.links.nic : result.links.nvlink) = result.fluid;
  if (call.group.nodes > 1) result.wire = nic_rate(call);
  return result;
}

std::string scaled_note(const CostCall& call, const CollectiveTable& table) {
  const GroupShape measured = measured_call(call, table, call.collective).group;
  return fmt::format("{} of {}: scaled from the table of {} by {}", name(call.collective),
                     ranks_text(call.group), ranks_text(measured),
                     call.group.nodes == 1 ? "steps and traffic"
                     : call.group.ranks_per_node != measured.ranks_per_node
                         ? "the hops, bytes and NICs of the cost model"
                         : "the hops and bytes of the cost model");
}

/// "2 MiB is outside its table (1 KiB to 1 MiB)", in bytes where rounded sizes would be the same.
std::string outside_text(Bytes size, const hardware::SizeTable& table) {
  const Bytes first = table.points().front().first, last = table.points().back().first;
  const bool rounds = format(size) == format(first) || format(size) == format(last);
  const auto text = [&](Bytes bytes) {
    return rounds ? fmt::format("{} B", bytes.count()) : format(bytes);
  };
  if (first == last) {
    return fmt::format("{} is not {}, the only size of its table", text(size), text(first));
  }
  return fmt::format("{} is outside its table ({} to {})", text(size), text(first), text(last));
}

/// Where a table of the group's own shape cannot be true of this cluster, or lacks the size.
std::optional<std::string> own_note(const CostCall& call, const CollectiveTable& table) {
  const Time least = wire_bound(call), stated = scaled_time(call, table).time;
  if (stated < least) {
    return fmt::format(
        "{} of {}: its table has {} for {}, faster than the links of this cluster carry the bytes; "
        "{} taken",
        name(call.collective), ranks_text(call.group), format(stated), format(call.size),
        format(least));
  }
  if (table.times.covers(call.size)) return std::nullopt;
  return fmt::format("{} of {}: {}", name(call.collective), ranks_text(call.group),
                     outside_text(call.size, table.times));
}

}  // namespace

CostCall measured_call(const CostCall& call, const CollectiveTable& table, Collective operation) {
  CostCall measured = call;
  measured.collective = operation;
  GroupShape& shape = measured.group;
  if (operation == Collective::send_receive) {
    shape = table.nodes > 1 ? GroupShape{.ranks = 2, .nodes = 2}
                            : GroupShape{.ranks = 2, .ranks_per_node = 2};
  } else if (table.ranks != shape.ranks || table.nodes != shape.nodes) {
    shape = {
        .ranks = table.ranks, .nodes = table.nodes, .ranks_per_node = table.ranks / table.nodes};
  }
  shape.groups_per_node = 1;
  shape.node_stride = 1;
  return measured;
}

std::string ranks_text(const GroupShape& group) {
  if (group.nodes == 1) return fmt::format("{} ranks", group.ranks);
  return fmt::format("{} ranks, {} a node", group.ranks, group.ranks_per_node);
}

CollectiveTime modelled(const CostCall& call, Bytes size) {
  const auto times =
      candidates(call.collective, size, call.group, call.cluster, {.sharing = call.sharing});
  return *std::ranges::min_element(times, {}, &CollectiveTime::time);
}

const CollectiveTable* nearest_table(const CostCall& call, Collective operation) {
  const CollectiveTable* best = nullptr;
  std::pair<double, double> best_distance;
  for (const CollectiveTable& table : call.cluster.measured_collectives) {
    if (table.operation != name(operation)) continue;
    if ((table.nodes > 1) != (call.group.nodes > 1)) continue;
    if ((table.ranks + table.nodes - 1) / table.nodes > call.cluster.node.gpus) continue;
    const auto apart = distance(call, table, operation);
    if (best && apart >= best_distance) continue;
    best = &table;
    best_distance = apart;
  }
  return best;
}

std::optional<CollectiveTime> measured_time(const CostCall& call) {
  const CollectiveTable* table = nearest_table(call, call.collective);
  if (!table) return std::nullopt;
  CollectiveTime result = scaled_time(call, *table);
  keep_to_wire(call, result);
  return result;
}

}  // namespace collectives

const hardware::CollectiveTable* table_of(Collective collective, const GroupShape& group,
                                          const hardware::Cluster& cluster) {
  const collectives::CostCall call{collective, Bytes{1}, group, cluster};
  const hardware::CollectiveTable* own = collectives::nearest_table(call, collective);
  return own ? own : collectives::carrying_table(call);
}

std::optional<std::string> table_note(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster) {
  if (group.ranks == 1 || size == Bytes{0}) return std::nullopt;
  const collectives::CostCall call{collective, size, group, cluster};
  if (const auto* table = collectives::nearest_table(call, collective)) {
    const GroupShape shape = collectives::measured_call(call, *table, collective).group;
    const bool own = shape.ranks == group.ranks && shape.nodes == group.nodes;
    return own ? collectives::own_note(call, *table) : collectives::scaled_note(call, *table);
  }
  if (!collectives::carrying_table(call)) return std::nullopt;
  return collectives::carried_note(call);
}

}  // namespace orrery::models
