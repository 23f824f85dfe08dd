#pragma once
// The traffic of one job before it is folded: every replica of a channel and every group, with the
// links that its flows cross.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/evaluation/traffic/flow_counts.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

/// A channel's replica or a group. Links are numbered by JobSources::links.
struct TrafficSource {
  std::uint32_t id = 0;  // channel, or structure of a group
  bool group = false;
  std::uint32_t first_member = 0, members = 0;
  std::uint32_t first_flow = 0, flows = 0;  // in JobSources::flows: the links that it crosses
  WireRate wire = 0, full = 0;
};

/// How the flows of a collective or transfer use links.
struct FlowShape {
  TrafficPattern pattern = TrafficPattern::ring;
  int flows = 1;
  double share = 0;  // of its ports' line rate; 0: sends nothing
};

/// A set of groups. Joint collectives of one communicator over the same classes share it;
/// collectives inside blocks have one for each kind and class.
struct GroupStructure {
  std::uint16_t communicator = 0;
  std::vector<std::uint32_t> classes;  // ascending
  bool inside = false;                 // of collectives inside blocks
  FlowShape shape;
  bool everyone = false;  // one group has all ranks
};

/// All channels and groups of one job.
struct JobSources {
  /// Where rails are equal, only the first one is listed: a rank stands for its whole tensor group.
  std::uint32_t rails = 1;
  std::uint32_t tensor = 1, replicas = 1, ranks = 0;
  std::vector<TrafficSource> all;  // channels, then groups
  std::size_t channels = 0;
  std::vector<std::uint32_t> members;  // ranks
  std::vector<LinkFlows> flows;
  std::vector<std::uint32_t> links;  // links of the site that some flow crosses
  std::vector<GroupStructure> structures;
  std::vector<std::uint32_t> structure_of_joint;
  InsideCollectives inside;

  bool joint(const TrafficSource& each) const { return each.group && !structures[each.id].inside; }
  std::span<const std::uint32_t> members_of(const TrafficSource& each) const {
    return {members.data() + each.first_member, each.members};
  }
  std::span<const LinkFlows> flows_of(const TrafficSource& each) const {
    return {flows.data() + each.first_flow, each.flows};
  }
};

/// The fluid part of a transfer at full rate, and the share of its ports' line rate that it then
/// uses: below 1 where links inside the node are slower.
struct FluidWire {
  Time fluid{};
  double share = 0;
};
FluidWire wire_of(LinkTimes links);

/// Is there a collective inside blocks whose ranks may differ: of a tensor group that spans nodes,
/// or of a group other than the tensor group?
bool meets_inside(const PricedProgram& priced, const NetworkSite& site);

/// Number of equal rails, of which the first stands for all; 1 where ranks of a node differ or send
/// across rails.
std::uint32_t rails_of(const PricedProgram& priced, const NetworkSite& site);

JobSources sources_of(const PricedProgram& priced, const NetworkSite& site,
                      std::uint32_t rails = 1);

}  // namespace orrery::models::traffic
