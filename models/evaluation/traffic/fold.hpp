#pragma once
// Folds equal ranks, channels, groups and links: the coarsest equitable partition, in which all
// members of a class have the same number of neighbours in every class. In such a partition equal
// states stay equal: the sharing of links depends only on the capacity left on a link and on the
// number of flows that still rise on it, which are the same on all links of a class. Colour
// refinement by hashes finds the partition, and exact counts verify it: a collision of hashes is an
// error and never a wrong result.
// Source  Berkholz, Bonsma & Grohe 2017, "Tight lower and upper bounds for the complexity of
//         canonical colour refinement"

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/sources.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

/// A link that could be overloaded.
struct ContendedLink {
  std::uint32_t link = 0;
  WireRate capacity = 0;
  std::vector<std::pair<Time, WireRate>> changes;
};

/// The class of each rank, source and contended link, numbered in the order of first members. A
/// class of ranks or sources belongs to one job.
struct Partition {
  std::vector<std::uint32_t> ranks, sources, contended_links;
};

inline constexpr std::uint32_t no_contended_link = 0xffffffff;

/// Fold a whole step, or only its part before our first joint collective, in which our joint
/// collectives do not distinguish ranks.
enum class FoldSpan : std::uint8_t { whole_step, before_joints };

/// The graph that is folded: ranks are members of sources, whose flows cross contended links.
struct FoldInput {
  const AllSources& all;
  const std::vector<ContendedLink>& contended_links;
  const std::vector<std::uint32_t>& contended_of_link;  // no_contended_link: none
  FoldSpan span = FoldSpan::whole_step;

  /// Does this source take part in the span?
  bool counts(const JobSources& job, const TrafficSource& each) const {
    return span == FoldSpan::whole_step || &job != all.jobs.data() || !job.joint(each);
  }
  /// Calls `add` with each source of the span, each of its ranks, and 0; 1 and 2 for the ends of a
  /// channel, which are ordered. Sources and ranks are numbered over all jobs.
  template <class Add>
  void each_member(Add add) const {
    each_source([&](std::uint32_t e, std::size_t j, const TrafficSource& each) {
      std::uint32_t place = 0;
      for (const std::uint32_t rank : all.jobs[j].members_of(each)) {
        add(e, all.first_rank[j] + rank, each.group ? 0 : ++place);
      }
    });
  }
  /// Calls `add` with each source of the span, each contended link that it crosses, and its flows.
  template <class Add>
  void each_crossing(Add add) const {
    each_source([&](std::uint32_t e, std::size_t j, const TrafficSource& each) {
      for (const LinkFlows& flows : all.jobs[j].flows_of(each)) {
        const std::uint32_t link = contended_of_link[flows.link];
        if (link != no_contended_link) add(e, link, flows.flows);
      }
    });
  }

 private:
  template <class Visit>
  void each_source(Visit visit) const {
    std::uint32_t e = 0;
    for (std::size_t j = 0; j < all.jobs.size(); ++j) {
      for (const TrafficSource& each : all.jobs[j].all) {
        if (counts(all.jobs[j], each)) visit(e, j, each);
        ++e;
      }
    }
  }
};

/// The coarsest equitable partition.
Partition partition_of(const FoldInput& input);
/// The partition in which every class has one member.
Partition unfolded_partition(const FoldInput& input);

/// Fills `traffic` from a partition; the ranks, flow classes and link classes are those of each
/// class's first member. Returns the link class of each class of contended links.
/// Errors  two members of one class that differ: ContractError
std::vector<std::uint32_t> fill(const FoldInput& input, const Partition& partition,
                                Traffic& traffic);

}  // namespace orrery::models::traffic
