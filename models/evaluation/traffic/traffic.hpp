#pragma once
// The traffic that a step puts on links between nodes, with equal ranks, flows and links counted
// instead of listed. README.md has the words and a drawing.
//
// A collective or transfer takes its latency, in which it sends nothing, then its fluid part: D
// picoseconds at d, the wire rate of one of its flows at full speed.
//   amount of a flow  A = D x d
//   its end           ceil(A / r) after the start of its fluid part, while its rate is r <= d
// All flows of one flow class have one rate: a ring moves the same bytes over every edge and waits
// for the slowest. Queues are in order, so a class runs one collective or transfer at a time.
//
// Rates are max-min fair per flow (sim/flows/max_min.hpp). Where not even all classes together can
// fill a link, no rate depends on it, and the link is left out.
//
// Collectives inside blocks (of tensor groups that span nodes, all-to-alls of experts) are traffic
// like joint ones. Which links the flows of a group cross follows from its pattern:
// flow_counts.hpp. Leaves out the part of a reduction that a stack hides before its exposed part
// begins: it uses no link here.
//
// Several jobs share links as the collectives of one job do; their ranks are never folded together.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/evaluation/traffic/site.hpp"

namespace orrery::models {

/// How many flows cross a link: of a flow class its multiplicity, on each link of a class.
struct LinkFlows {
  std::uint32_t link = 0, flows = 0;
};

/// The equal flows of a class of equal channels or groups.
struct FlowClass {
  WireRate wire = 0;             // of one flow at full speed; 0: sends nothing between nodes
  WireRate cap = 0;              // of one flow with all else idle: its own flows may share links
  std::vector<LinkFlows> links;  // contended ones, by link class
  bool contended = false;        // crosses one of them; else its end is known at its start
};

/// A class of equal contended links: each is crossed by the same flows.
struct LinkClass {
  WireRate capacity = 0;
  std::uint32_t link = 0;  // the first of them
  std::uint32_t size = 0;  // how many
  std::vector<std::pair<Time, WireRate>> changes;
};

/// A class of equal ranks.
struct FoldedRank {
  std::uint32_t rank_class = 0;  // of the Program
  std::uint32_t first = 0;       // the first of its ranks
  std::uint32_t size = 0;
  std::uint32_t tensor_group = 0;
  double speed = 1;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> channels;  // Program's, folded
  std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;    // split, folded group

  std::uint32_t channel(std::uint32_t id) const;
  std::uint32_t group(std::uint32_t split) const;
};
/// A class of equal replicas of a channel.
struct FoldedChannel {
  std::uint32_t channel = 0, from = 0, to = 0;  // folded ranks
};
/// A class of equal groups, each of a communicator's split of ranks into groups.
struct FoldedGroup {
  std::uint32_t split = 0;
  std::uint16_t communicator = 0;
  std::vector<std::uint32_t> members;  // folded ranks, each once
};

inline constexpr std::uint32_t no_kind = 0xffffffff;

/// Which groups run the collectives inside blocks, by kinds of these (block_collectives.hpp). No
/// kinds where all of them stay on one node, among equal ranks.
struct BlockCollectives {
  std::size_t kinds = 0;
  std::vector<std::vector<std::uint32_t>> of_block;  // kinds by operation; empty: it has none
  std::vector<std::uint32_t> splits;                 // class x kinds + kind; no_kind: none

  /// Of an operation of a block: its kind, or no_kind.
  std::uint32_t kind(std::uint32_t block, std::size_t operation) const {
    return of_block[block].empty() ? no_kind : of_block[block][operation];
  }
  std::uint32_t split(std::uint32_t rank_class, std::uint32_t kind) const {
    return splits[rank_class * kinds + kind];
  }
};

/// One job's part of the traffic: its folded ranks, channels and groups. Each channel and group has
/// a flow class.
struct JobTraffic {
  const PricedProgram* priced = nullptr;
  std::vector<FoldedRank> ranks;
  std::vector<std::vector<std::uint32_t>> tensor_groups;  // folded ranks, each once
  std::vector<FoldedChannel> channels;
  std::vector<FoldedGroup> groups;
  std::vector<std::uint32_t> split_of_joint;  // as Program::collectives
  BlockCollectives block_collectives;
  std::vector<std::uint32_t> folded;   // by rank: class x replicas + replica
  std::uint32_t first_flow_class = 0;  // those of its channels, then of its groups

  std::uint32_t flow_class_of_group(std::uint32_t group) const {
    return first_flow_class + static_cast<std::uint32_t>(channels.size()) + group;
  }
};

/// Equal ranks as one, and none at all where maps are exact (classes); or only within tensor
/// groups, for evaluations with launch delays (always); or every rank by itself (none).
enum class Folding : std::uint8_t { classes, always, none };

struct PrefixTraffic;  // prefix.hpp

struct Traffic : JobTraffic {
  /// No link that the job uses can be filled and no rank differs: maps of the Program's classes are
  /// exact.
  bool maps_exact = false;
  /// With nothing else on its links, everything takes its priced time, and all ranks run at the
  /// priced speed.
  bool as_priced = false;
  std::uint32_t rails = 1;  // equal rails, of which the first stands for all
  std::vector<FlowClass> flow_classes;
  std::vector<LinkClass> link_classes;
  std::size_t links = 0, contended_links = 0;  // of the site
  /// Other jobs that can delay this one, over shared links or through each other, and their numbers
  /// at the site.
  std::vector<JobTraffic> others;
  std::vector<std::uint32_t> other_of_site;
  /// The step until its first joint collective, folded further; null where that saves little.
  std::shared_ptr<const PrefixTraffic> prefix;
};

/// Why a Program's traffic cannot be simulated at this site; nullopt if it can.
std::optional<std::string> not_simulated(const PricedProgram& priced, const NetworkSite& site);

/// Errors  not_simulated, a placement of other ranks: ContractError
Traffic traffic_of(const PricedProgram& priced, const NetworkSite& site,
                   Folding folding = Folding::classes);

/// The traffic of our job without the others, as if nothing that it sends shared a link.
Traffic traffic_alone(const PricedProgram& priced, NetworkSite site,
                      Folding folding = Folding::classes);

/// The fluid part of one transfer of this channel, at full rate.
Time fluid_of_channel(const PricedProgram& priced, std::uint32_t channel);

}  // namespace orrery::models
