#pragma once
// The traffic that a step puts on links between nodes; equal ranks, groups and links are folded.
//
// A collective or transfer takes `latency`, in which it sends nothing, then its fluid part: D
// picoseconds at d, the wire rate of one of its flows at full speed. So its amount is A = D x d,
// and at rate r <= d it falls by r per picosecond. Its end is rounded up. All flows of one template
// have one rate: a ring moves the same bytes over every edge and waits for the slowest. There is
// one template for each group and channel: in-order queues allow one instance at a time.
//
// Rates are max-min fair per flow, by progressive filling: the rates of all flows rise together; a
// template stops when a link that it crosses is full, or at its rate alone on this fabric (`full`).
// Links that their traffic cannot fill even when all of it is active at `full` have no row here: no
// rate depends on them.
//
// Collectives inside blocks (of tensor groups that span nodes, all-to-alls of experts) are traffic
// like joint ones: a template for each group and kind. Which links a template's flows cross follows
// from its pattern: flow_counts.hpp. Leaves out the part of a reduction that a stack hides before
// its exposed part begins: it uses no link here.
//
// Several jobs share links as the collectives of one job do; their ranks are never folded together.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/evaluation/traffic/site.hpp"

namespace orrery::models {

/// How many flows of a template's class cross each link of a row.
struct RowUse {
  std::uint32_t row = 0;
  std::uint32_t flows = 0;
};

/// A class of equal channels or groups: the rate of each flow, and the links that they cross.
struct TrafficTemplate {
  WireRate wire = 0;         // d: of one flow at full speed; 0: sends nothing between nodes
  WireRate full = 0;         // of one flow alone on this fabric
  std::vector<RowUse> rows;  // of links that could be overloaded
  bool shared = false;  // crosses such a link during the step; else its end is known at its start
};

/// A class of links that could be overloaded: equal traffic crosses each of them.
struct LinkRow {
  WireRate capacity = 0;
  std::uint32_t link = 0;   // the first of them
  std::uint32_t alike = 0;  // how many
  std::vector<std::pair<Time, WireRate>> changes;
};

/// A class of equal ranks.
struct FoldedRank {
  std::uint32_t rank_class = 0;  // of the Program
  std::uint32_t first = 0;       // the first of its ranks
  std::uint32_t size = 0;
  std::uint32_t unit = 0;  // its tensor group
  double speed = 1;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> channels;  // Program's, folded
  std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;    // structure, folded group

  std::uint32_t channel(std::uint32_t id) const;
  std::uint32_t group(std::uint32_t structure) const;
};
/// A class of equal replicas of a channel.
struct FoldedChannel {
  std::uint32_t channel = 0, from = 0, to = 0;  // folded ranks
};
/// A class of equal groups.
struct FoldedGroup {
  std::uint32_t structure = 0;
  std::uint16_t communicator = 0;
  std::vector<std::uint32_t> members;  // folded ranks, each once
};

inline constexpr std::uint32_t no_inside = 0xffffffff;

/// Which groups run the collectives inside blocks. Empty where all of these stay on one node, among
/// equal ranks.
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

/// One job's part of the traffic: its folded ranks, channels and groups; each channel and group has
/// a template.
struct JobTraffic {
  const PricedProgram* priced = nullptr;
  std::vector<FoldedRank> ranks;
  std::vector<std::vector<std::uint32_t>> units;  // tensor groups: folded ranks, each once
  std::vector<FoldedChannel> channels;
  std::vector<FoldedGroup> groups;
  std::vector<std::uint32_t> structure_of_joint;  // as Program::collectives
  InsideCollectives inside;
  std::vector<std::uint32_t> folded;  // by rank: class x replicas + replica
  std::uint32_t first_template = 0;   // templates of its channels, then of its groups

  std::uint32_t group_template(std::uint32_t group) const {
    return first_template + static_cast<std::uint32_t>(channels.size()) + group;
  }
};

/// Equal ranks as one, and none at all where maps are exact (classes); or only within tensor
/// groups, for evaluations with launch delays (always); or every rank by itself (none).
enum class Folding : std::uint8_t { classes, always, none };

struct EarlyTraffic;  // early.hpp

struct Traffic : JobTraffic {
  /// No link that the job uses can be filled and no rank differs: maps of the program's classes are
  /// exact.
  bool certified = false;
  /// Alone on its links, everything takes its priced time, and all ranks run at the priced speed.
  bool lossless = false;
  std::uint32_t rails = 1;  // equal rails, of which the first stands for all
  std::vector<TrafficTemplate> templates;
  std::vector<LinkRow> rows;
  std::size_t links = 0, contended_links = 0;  // of the site, and those of them with a row
  /// Other jobs that can delay this one, over shared links or through each other, and their numbers
  /// at the site.
  std::vector<JobTraffic> others;
  std::vector<std::uint32_t> other_of_site;
  std::shared_ptr<const EarlyTraffic> early;  // until the first joint collective; may be null
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
