#pragma once
// What a step puts on the links between nodes, and which ranks, groups and links are alike there.
//
// A collective or transfer in progress is `latency`, in which it sends nothing, then a fluid part:
// D picoseconds of work at the wire rate d of one of its flows at full speed, so its amount is
// A = D x d, and at rate r <= d it falls by r per picosecond. Its end is rounded up. All flows of
// one template have one rate: a ring moves the same bytes over every edge and waits for the
// slowest. One template per group and channel: in-order queues allow one instance at a time.
//
// Rates are max-min fair per flow: one level rises for all; a template stops when a link that it
// crosses is full, or at its rate alone on this fabric (`full`). Links that their traffic cannot
// fill even when all of it is active at `full` have no row here: nothing depends on them.
//
// Collectives inside blocks (of tensor groups that span nodes, all-to-alls of experts) are traffic
// like joint ones: a template for each group and kind. Which links a template's flows cross follows
// from its pattern: flow_counts.hpp. Leaves out what a stack hides of a reduction before its
// exposed part begins.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "sim/flows/link.hpp"

namespace orrery::models {

/// 2^-12 byte/s: shares of whole numbers never add up to more than a link. Trunks of thousands of
/// cables fit; what is wider than 2^50 byte/s counts as that, which nothing fills.
using WireRate = std::uint64_t;
WireRate wire_rate(Bandwidth bandwidth);
Bandwidth bandwidth_of(WireRate rate);

/// Where ranks run: by rank, node x gpus_per_node + GPU.
struct RankPlacement {
  std::vector<std::uint32_t> devices;
  std::uint32_t gpus_per_node = 1;

  std::uint32_t node(std::size_t rank) const { return devices[rank] / gpus_per_node; }
  std::uint32_t gpu(std::size_t rank) const { return devices[rank] % gpus_per_node; }
};
/// Ranks fill the nodes in order.
RankPlacement contiguous(std::size_t ranks, std::uint32_t gpus_per_node);

/// From `at` on, a link carries this.
struct LinkChange {
  std::uint32_t link = 0;
  Time at{};
  Bandwidth bandwidth{};
};

/// Where a step runs: ports and links between nodes, ranks on them.
struct NetworkSite {
  std::vector<Bandwidth> links;  // what each carries
  /// `route` becomes the links from one port to another, port = node x ports_per_node + port there,
  /// of a flow whose number tells it apart from others between them.
  std::function<void(std::size_t from, std::size_t to, std::uint64_t flow, Route& route)> route;
  std::uint32_t ports_per_node = 1;
  std::vector<std::uint32_t> nearest;  // port, of each GPU of a node; empty: ports in equal parts
  /// Messages leave by their destination's rail, which they reach inside the node.
  bool by_rail = false;
  Bandwidth port{};  // line rate of one
  RankPlacement placement;
  /// Port k of every node is on rail k, and rails do the same with the same flows:
  /// fabric_graph.hpp.
  bool rails_alike = false;
  std::vector<double> speeds;       // of each rank's GPU, 1 as priced; empty: all 1
  std::vector<LinkChange> changes;  // during the step
};

/// Flows of a template's class on one link of a row.
struct RowUse {
  std::uint32_t row = 0;
  std::uint32_t flows = 0;
};

struct TrafficTemplate {
  WireRate wire = 0;         // d; 0: nothing between nodes
  WireRate full = 0;         // alone on this fabric
  std::vector<RowUse> rows;  // empty: nothing can slow it
};

/// Links that could be overloaded, alike in all that crosses them.
struct LinkRow {
  WireRate capacity = 0;
  std::uint32_t link = 0;   // the first of them
  std::uint32_t alike = 0;  // how many
  std::vector<std::pair<Time, WireRate>> changes;
};

/// Ranks that are alike.
struct FoldedRank {
  std::uint32_t rank_class = 0;  // of the Program
  std::uint32_t first = 0;       // rank
  std::uint32_t size = 0;
  std::uint32_t unit = 0;  // tensor group
  double speed = 1;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> channels;  // Program's, folded
  std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;    // structure, folded

  std::uint32_t channel(std::uint32_t id) const;
  std::uint32_t group(std::uint32_t structure) const;
};
struct FoldedChannel {
  std::uint32_t channel = 0, from = 0, to = 0;  // folded ranks
};
struct FoldedGroup {
  std::uint32_t structure = 0;
  std::uint16_t communicator = 0;
  std::vector<std::uint32_t> members;  // folded ranks, each once
};

inline constexpr std::uint32_t no_inside = 0xffffffff;

/// Which groups hold the collectives inside blocks. Empty where all of them stay on one node among
/// ranks that are alike.
struct InsideCollectives {
  std::size_t kinds = 0;
  std::vector<std::vector<std::uint32_t>> of_block;  // kinds by operation; empty: it has none
  std::vector<std::uint32_t> structures;             // class x kinds + kind; no_inside: none

  /// Of an operation of a block: its kind, or no_inside.
  std::uint32_t kind(std::uint32_t block, std::size_t operation) const {
    return of_block[block].empty() ? no_inside : of_block[block][operation];
  }
  std::uint32_t structure(std::uint32_t rank_class, std::uint32_t kind) const {
    return structures[rank_class * kinds + kind];
  }
};

enum class Folding : std::uint8_t { classes, none };

struct Traffic {
  /// No link can be filled and no rank differs: maps of the program's classes are exact.
  bool certified = false;
  /// Alone on its links everything takes what it is priced at, on ranks as priced.
  bool lossless = false;
  std::uint32_t rails = 1;  // alike, of which the first stands for all
  std::vector<FoldedRank> ranks;
  std::vector<std::vector<std::uint32_t>> units;  // tensor groups: folded ranks, each once
  std::vector<FoldedChannel> channels;
  std::vector<FoldedGroup> groups;
  std::vector<std::uint32_t> structure_of_joint;  // as Program::collectives
  InsideCollectives inside;
  std::vector<TrafficTemplate> templates;  // of channels, then of groups
  std::vector<LinkRow> rows;
  std::vector<std::uint32_t> folded;    // by rank: class x replicas + replica
  std::size_t links = 0, suspects = 0;  // of the site; of them, those with a row

  std::uint32_t group_template(std::uint32_t group) const {
    return static_cast<std::uint32_t>(channels.size()) + group;
  }
};

/// Why a Program's traffic cannot be simulated there; nothing: it can.
std::optional<std::string> not_simulated(const PricedProgram& priced, const NetworkSite& site);

/// Errors  not_simulated, a placement of other ranks: ContractError
Traffic traffic_of(const PricedProgram& priced, const NetworkSite& site,
                   Folding folding = Folding::classes);

/// Of a transfer of this channel: what is fluid of it, at full rate.
Time fluid_of_channel(const PricedProgram& priced, std::uint32_t channel);

}  // namespace orrery::models
