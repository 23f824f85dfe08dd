#pragma once
// The traffic of jobs before it is folded. A source is what can send: every replica of a channel,
// and every group of ranks that runs collectives, with the links that its flows cross.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/evaluation/traffic/flow_counts.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

/// A channel's replica or a group. Links are numbered by JobSources::links.
struct TrafficSource {
  std::uint32_t id = 0;  // channel, or split of a group
  bool group = false;
  std::uint32_t first_member = 0, members = 0;
  std::uint32_t first_flow = 0, flows = 0;  // in JobSources::flows: the links that it crosses
  WireRate wire = 0, cap = 0;
  bool contended = false;  // crosses a link that could be overloaded during the step
};

/// How the flows of a collective or transfer use links.
struct FlowShape {
  TrafficPattern pattern = TrafficPattern::ring;
  int flows = 1;
  double share = 0;  // of its ports' line rate; 0: sends nothing
};

/// The groups into which a communicator splits the ranks of some classes. Joint collectives of one
/// communicator over the same classes share them; collectives inside blocks have a split for each
/// kind and class.
struct CommunicatorSplit {
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
  std::vector<CommunicatorSplit> splits;
  std::vector<std::uint32_t> split_of_joint;
  BlockCollectives block_collectives;

  /// Is it a group of joint collectives?
  bool joint(const TrafficSource& each) const { return each.group && !splits[each.id].inside; }
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
bool block_collectives_differ(const PricedProgram& priced, const NetworkSite& site);

/// Number of equal rails, of which the first stands for all; 1 where ranks of a node differ or send
/// across rails.
std::uint32_t rails_of(const PricedProgram& priced, const NetworkSite& site);

JobSources sources_of(const PricedProgram& priced, const NetworkSite& site,
                      std::uint32_t rails = 1);

/// The ranks, channels and groups of all jobs on a site, ours first, numbered one job after
/// another. All jobs use one numbering of links.
struct AllSources {
  std::vector<JobSources> jobs;
  std::vector<std::vector<double>> speeds;                    // by job and rank; empty: all 1
  std::vector<std::uint32_t> first_rank{0}, first_source{0};  // of each job, then the total
  std::vector<std::uint32_t> links;  // links of the site that some flow crosses
  bool tensor_groups_apart = false;  // ranks of two tensor groups are never equal

  /// A rank or source: its job, and its number within the job.
  struct Local {
    std::size_t job = 0;
    std::uint32_t at = 0;
  };
  Local rank(std::uint32_t number) const { return place(first_rank, number); }
  Local source(std::uint32_t number) const { return place(first_source, number); }

  std::uint32_t ranks() const { return first_rank.back(); }
  std::uint32_t sources() const { return first_source.back(); }
  /// Number of a rank's tensor group in its stage.
  std::uint32_t tensor_group(Local rank) const {
    return rank.at % jobs[rank.job].replicas / jobs[rank.job].tensor;
  }
  double speed(Local rank) const {
    return speeds[rank.job].empty() ? 1 : speeds[rank.job][rank.at];
  }

  /// Adds a job, whose flows are renumbered to the links of all jobs.
  void add(JobSources job, std::vector<double> speeds_of_job);

 private:
  static Local place(const std::vector<std::uint32_t>& firsts, std::uint32_t number) {
    std::size_t job = 0;
    while (number >= firsts[job + 1]) ++job;
    return {job, number - firsts[job]};
  }

  std::vector<std::uint32_t> number_of_link_;  // by link of the site, from 1; 0: none yet
};

}  // namespace orrery::models::traffic
