#pragma once
// Which ranks, templates and links are alike: the coarsest partition in which equal members see
// equal others, equally often. In such a partition equal states stay equal: the sharing of links
// looks only at what is left of a link and how many flows are open on it, which is the same on all
// links of a class. Colours find the partition; integers verify it, so that a collision of hashes
// is an error and never an answer.
// Source  Berkholz, Bonsma & Grohe 2017, "Tight lower and upper bounds for the complexity of
//         canonical colour refinement"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/all_entities.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

/// A link that could be overloaded.
struct Suspect {
  std::uint32_t link = 0;
  WireRate capacity = 0;
  std::vector<std::pair<Time, WireRate>> changes;
};

/// Class numbers in order of first members. Each class is of one job.
struct Partition {
  std::vector<std::uint32_t> ranks, entities, suspects;
};

inline constexpr std::uint32_t no_suspect = 0xffffffff;

/// Of a step, or of its part before our first joint collective, where ours tell nothing apart.
enum class FoldSpan : std::uint8_t { whole_step, before_joints };

struct FoldInput {
  const AllEntities& all;
  const std::vector<Suspect>& suspects;
  const std::vector<std::uint32_t>& suspect_of_link;  // no_suspect: none
  FoldSpan span = FoldSpan::whole_step;
  const std::vector<std::uint32_t>* of_whole_step = nullptr;  // its suspects by link, of a part

  bool counts(const Entities& job, const Entity& each) const {
    return span == FoldSpan::whole_step || &job != all.jobs.data() || !job.joint(each);
  }
  /// Does it cross a link that could be overloaded at some time of the step?
  bool shared(const Entities& job, const Entity& each) const {
    const auto& suspects_by_link = of_whole_step ? *of_whole_step : suspect_of_link;
    const auto flows = job.flows_of(each);
    return std::any_of(flows.begin(), flows.end(), [&](const LinkFlows& one) {
      return suspects_by_link[one.link] != no_suspect;
    });
  }
};

Partition partition_of(const FoldInput& input);
/// Every one a class of its own.
Partition unfolded_partition(const FoldInput& input);

/// The Traffic of a partition; templates, rows and ranks of each class's first member. Returns the
/// row of each class of suspects.
/// Errors  two of one class that differ: ContractError
std::vector<std::uint32_t> fill(const FoldInput& input, const Partition& partition,
                                Traffic& traffic);

}  // namespace orrery::models::traffic
