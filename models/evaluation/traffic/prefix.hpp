#pragma once
// The prefix of a step: its part before our first joint collective. In it, ranks and links that
// differ only by joint collectives are equal: mostly the replicas of a pipeline, for all but the
// end of a step. It is evaluated with this coarser fold until a rank reaches its first joint
// collective. Then each rank, channel and link continues by itself, from the state of the one that
// stood for it.
//
// Exact, because until then no joint collective of ours is on any link, and the partition is
// equitable for everything else, the traffic of other jobs included; traffic on a link that could
// be overloaded only later is already evaluated by events.

#include <memory>
#include <optional>
#include <vector>

#include "models/evaluation/traffic/fold.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models {

/// The Traffic of a prefix, and which of its classes stand for those of the whole step.
struct PrefixTraffic {
  Traffic traffic;
  // For each rank, flow class and link class of the whole step's Traffic, the one here that stands
  // for it; nullopt for links that nothing can fill in the prefix.
  std::vector<std::uint32_t> ranks, flow_classes;
  std::vector<std::optional<std::uint32_t>> link_classes;
};

namespace traffic {

/// One job's part of a PrefixTraffic.
struct JobPrefix {
  const PrefixTraffic* prefix = nullptr;
  const JobTraffic* traffic = nullptr;  // the job's part of `prefix`
  std::uint32_t first_rank = 0, first_prefix_rank = 0;

  /// The rank of the prefix that stands for a rank of the job, and the channel or group (numbered
  /// channels first) that stands for one of `whole`.
  std::uint32_t rank(std::uint32_t r) const {
    return prefix->ranks[first_rank + r] - first_prefix_rank;
  }
  std::uint32_t source(const JobTraffic& whole, std::uint32_t e) const {
    return prefix->flow_classes[whole.first_flow_class + e] - traffic->first_flow_class;
  }
};

/// The prefix of the step whose Traffic is `made` with the partition `whole`; null where its fold
/// would not be much coarser.
/// link_classes  of that Traffic, by class of contended links
std::shared_ptr<const PrefixTraffic> prefix_traffic(const FoldInput& input, const Partition& whole,
                                                    const std::vector<std::uint32_t>& link_classes,
                                                    const Traffic& made);

}  // namespace traffic
}  // namespace orrery::models
