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
//
// Several jobs share links as the collectives of one do; their ranks are never alike.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/evaluation/traffic/site.hpp"

namespace orrery::models {

/// Flows of a template's class on one link of a row.
struct RowUse {
  std::uint32_t row = 0;
  std::uint32_t flows = 0;
};

struct TrafficTemplate {
  WireRate wire = 0;         // d; 0: nothing between nodes
  WireRate full = 0;         // alone on this fabric
  std::vector<RowUse> rows;  // of links that could be overloaded
  bool shared = false;  // it crosses such a link at some time of the step; else its end is known
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

/// One job's part: its ranks, channels and groups, of which its templates are.
struct JobTraffic {
  const PricedProgram* priced = nullptr;
  std::vector<FoldedRank> ranks;
  std::vector<std::vector<std::uint32_t>> units;  // tensor groups: folded ranks, each once
  std::vector<FoldedChannel> channels;
  std::vector<FoldedGroup> groups;
  std::vector<std::uint32_t> structure_of_joint;  // as Program::collectives
  InsideCollectives inside;
  std::vector<std::uint32_t> folded;  // by rank: class x replicas + replica
  std::uint32_t first_template = 0;   // of its channels, then of its groups

  std::uint32_t group_template(std::uint32_t group) const {
    return first_template + static_cast<std::uint32_t>(channels.size()) + group;
  }
};

enum class Folding : std::uint8_t { classes, none };

struct EarlyTraffic;  // early.hpp

struct Traffic : JobTraffic {
  /// No link that the job uses can be filled and no rank differs: maps of the program's classes are
  /// exact.
  bool certified = false;
  /// Alone on its links everything takes what it is priced at, on ranks as priced.
  bool lossless = false;
  std::uint32_t rails = 1;  // alike, of which the first stands for all
  std::vector<TrafficTemplate> templates;
  std::vector<LinkRow> rows;
  std::size_t links = 0, suspects = 0;  // of the site; of them, those with a row
  /// Other jobs that can delay this one, over links or by way of each other, and which of the
  /// site's they are.
  std::vector<JobTraffic> others;
  std::vector<std::uint32_t> other_of_site;
  std::shared_ptr<const EarlyTraffic> early;  // until the first joint collective; may be nothing
};

/// Why a Program's traffic cannot be simulated there; nothing: it can.
std::optional<std::string> not_simulated(const PricedProgram& priced, const NetworkSite& site);

/// Errors  not_simulated, a placement of other ranks: ContractError
Traffic traffic_of(const PricedProgram& priced, const NetworkSite& site,
                   Folding folding = Folding::classes);

/// Our job by itself, as if nothing that it sends shared a link.
Traffic traffic_alone(const PricedProgram& priced, NetworkSite site);

/// Of a transfer of this channel: what is fluid of it, at full rate.
Time fluid_of_channel(const PricedProgram& priced, std::uint32_t channel);

}  // namespace orrery::models
