#pragma once
// The part of a step before its first joint collective. In it, ranks and links that differ only by
// joint collectives are equal: mostly the replicas of a pipeline, for all but the end of a step. It
// is evaluated with this coarser fold until a rank reaches its first joint collective. Then each
// rank, channel and link continues by itself, from the state of the one that stood for it.
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

/// The Traffic of that part, and which of its classes stand for those of the whole step.
struct EarlyTraffic {
  Traffic traffic;
  // For each rank, template and row of the whole step's Traffic, the one here that stands for it;
  // nullopt for a row that nothing can fill in this part.
  std::vector<std::uint32_t> ranks, templates;
  std::vector<std::optional<std::uint32_t>> rows;
};

namespace traffic {

/// One job's part of an EarlyTraffic.
struct EarlyJob {
  const EarlyTraffic* early = nullptr;
  const JobTraffic* traffic = nullptr;  // the job's part of `early`
  std::uint32_t first_rank = 0, first_early_rank = 0;

  /// The early rank that stands for a rank of the job, and the early channel or group (numbered
  /// channels first) that stands for one of `whole`.
  std::uint32_t rank(std::uint32_t r) const {
    return early->ranks[first_rank + r] - first_early_rank;
  }
  std::uint32_t source(const JobTraffic& whole, std::uint32_t e) const {
    return early->templates[whole.first_template + e] - traffic->first_template;
  }
};

/// The early part of the Traffic `made` with the partition `whole`; null where its fold would not
/// be much coarser.
/// rows  of that Traffic, by class of contended links
std::shared_ptr<const EarlyTraffic> early_traffic(const FoldInput& input, const Partition& whole,
                                                  const std::vector<std::uint32_t>& rows,
                                                  const Traffic& made);

}  // namespace traffic
}  // namespace orrery::models
