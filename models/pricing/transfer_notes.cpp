// Notes about transfers: tables that were scaled or that price nothing, and an oversubscription
// that changes no time.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/network/collectives/measured.hpp"
#include "models/network/placement.hpp"
#include "models/pricing/notes.hpp"
#include "models/pricing/price.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

namespace {

/// A collective or transfer, as it is priced.
struct NotedMessage {
  Collective kind;
  Bytes bytes;
  GroupShape group;
};

/// The Program's messages, of groups with more than one rank.
std::vector<NotedMessage> messages_of(const Program& program, int gpus_per_node,
                                      const AxisOrder& order) {
  std::vector<NotedMessage> transfers;
  const auto add = [&](Collective kind, Bytes bytes, std::uint16_t communicator) {
    const GroupShape group =
        shape_of(program.mesh, program.communicators[communicator], kind, gpus_per_node, order);
    if (group.ranks > 1 && bytes > Bytes{0}) transfers.push_back({kind, bytes, group});
  };
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (op.kind == OpKind::collective) add(op.collective(), op.bytes, op.communicator());
    }
  }
  for (const JointCollective& joint : program.collectives) {
    add(joint.kind, joint.bytes, joint.communicator);
  }
  for (const Channel& channel : program.channels) {
    add(Collective::send_receive, channel.bytes, channel.communicator);
  }
  return transfers;
}

/// "all_reduce in a node, reduce_scatter across nodes".
std::string message_kinds(const std::vector<NotedMessage>& transfers) {
  std::set<std::string> kinds;
  for (const NotedMessage& each : transfers) {
    kinds.insert(fmt::format("{} {}", name(each.kind),
                             each.group.nodes > 1 ? "across nodes" : "inside a node"));
  }
  return kinds.empty() ? "no transfer" : fmt::format("{}", fmt::join(kinds, ", "));
}

/// The largest message that a table prices here; nullopt where it prices none.
std::optional<Bytes> most_priced_by(const hardware::CollectiveTable& table,
                                    const std::vector<NotedMessage>& transfers,
                                    const hardware::Cluster& cluster) {
  std::optional<Bytes> most;
  for (const NotedMessage& each : transfers) {
    const bool priced = table_of(each.kind, each.group, cluster) == &table;
    if (priced && (!most || *most < each.bytes)) most = each.bytes;
  }
  return most;
}

/// The largest message of groups inside a node, or of those across nodes.
Bytes largest_of(const std::vector<NotedMessage>& messages, bool across) {
  Bytes largest{};
  for (const NotedMessage& each : messages) {
    if ((each.group.nodes > 1) == across) largest = std::max(largest, each.bytes);
  }
  return largest;
}

/// Does a table price messages on which a step spends time? Below 64 KiB a message is all latency,
/// and below a tenth of the largest message of such groups its time hardly counts.
bool matters(Bytes most, Bytes largest) {
  constexpr Bytes bare_latency{64 << 10};
  return most >= bare_latency && most * 10 >= largest;
}

void note_idle_tables(const std::vector<NotedMessage>& transfers, const hardware::Cluster& cluster,
                      std::vector<std::string>& assumptions) {
  std::string idle;
  for (const hardware::CollectiveTable& table : cluster.measured_collectives) {
    const auto most = most_priced_by(table, transfers, cluster);
    if (most && matters(*most, largest_of(transfers, table.nodes > 1))) continue;
    idle +=
        fmt::format("{}{} of {} ranks{}{}", idle.empty() ? "" : ", ", table.operation, table.ranks,
                    table.nodes > 1 ? fmt::format(" on {} nodes", table.nodes) : "",
                    most ? fmt::format(" (only up to {})", format(*most)) : "");
  }
  if (idle.empty()) return;
  note_once(fmt::format("measured collectives that this plan does not use: {}; it runs {}", idle,
                        message_kinds(transfers)),
            assumptions);
}

/// Why oversubscribed leaf switches (fewer links up than down) change no time.
std::string unfelt_because(const std::vector<NotedMessage>& transfers,
                           const hardware::Cluster& cluster) {
  const hardware::ClusterFabric& fabric = cluster.fabric;
  const bool crosses =
      std::ranges::any_of(transfers, [](const NotedMessage& each) { return each.group.nodes > 1; });
  if (!crosses) return "no transfer leaves its node";
  if (cluster.nodes <= fabric.nodes_per_leaf) {
    return fmt::format("all {} nodes are under one leaf switch, which has room for {}",
                       cluster.nodes, fabric.nodes_per_leaf);
  }
  return fmt::format(
      "a ring or tree crosses the uplinks of a leaf switch once in each direction, and those of "
      "its {} nodes are as fast as full uplinks of {:.3g} nodes",
      fabric.nodes_per_leaf, fabric.nodes_per_leaf / fabric.oversubscription);
}

}  // namespace

void note_tables(const Program& program, const hardware::Cluster& cluster,
                 std::vector<std::string>& assumptions, const AxisOrder& order) {
  if (cluster.measured_collectives.empty()) return;
  const std::vector<NotedMessage> transfers = messages_of(program, cluster.node.gpus, order);
  for (const NotedMessage& each : transfers) {
    if (const auto text = table_note(each.kind, each.bytes, each.group, cluster)) {
      note_once(*text, assumptions);
    }
  }
  note_idle_tables(transfers, cluster, assumptions);
}

void note_oversubscription(const Program& program, const hardware::Cluster& cluster,
                           std::vector<std::string>& assumptions, const WirePlaces& places) {
  if (cluster.fabric.oversubscription <= 1) return;
  hardware::Cluster full = cluster;
  full.fabric.oversubscription = 1;
  const std::vector<NotedMessage> transfers = messages_of(program, cluster.node.gpus, places.order);
  const CollectivePricing pricing{.nccl = places.nccl};
  const bool felt = std::ranges::any_of(transfers, [&](const NotedMessage& each) {
    return price(each.kind, each.bytes, each.group, cluster, pricing).time !=
           price(each.kind, each.bytes, each.group, full, pricing).time;
  });
  if (felt) return;
  note_once(fmt::format("/cluster/fabric/oversubscription: {:.3g} changes no time of this plan: {}",
                        cluster.fabric.oversubscription, unfelt_because(transfers, cluster)),
            assumptions);
}

}  // namespace orrery::models
