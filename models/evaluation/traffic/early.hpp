#pragma once
// A step until its first joint collective, in which ranks and links that only joint collectives
// tell apart are alike: replicas of a pipeline mostly, for all but the last of a step. It is
// evaluated so until a rank stands at its first joint collective. Then each rank, channel and link
// goes on by itself from where those that stood for it stand.
//
// Exact, because until then no joint collective of ours is on any link, and the partition is
// equitable for all else, all that other jobs send included; what crosses a link that could be
// overloaded later has its events now.

#include <memory>
#include <optional>
#include <vector>

#include "models/evaluation/traffic/fold.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models {

struct EarlyTraffic {
  Traffic traffic;
  // Of each rank, template and row of the whole step's, the one that stands for it; of a row that
  // nothing can fill by then, none.
  std::vector<std::uint32_t> ranks, templates;
  std::vector<std::optional<std::uint32_t>> rows;
};

namespace traffic {

/// One job's part of it.
struct EarlyJob {
  const EarlyTraffic* early = nullptr;
  const JobTraffic* traffic = nullptr;  // of `early`
  std::uint32_t first_rank = 0, first_early_rank = 0;

  /// Of the job's ranks, and of its channels and then groups.
  std::uint32_t rank(std::uint32_t r) const {
    return early->ranks[first_rank + r] - first_early_rank;
  }
  std::uint32_t entity(const JobTraffic& whole, std::uint32_t e) const {
    return early->templates[whole.first_template + e] - traffic->first_template;
  }
};

/// Of a Traffic with its partition; nothing where it would not be much smaller.
/// rows  of that Traffic, by class of suspects
std::shared_ptr<const EarlyTraffic> early_traffic(const FoldInput& input, const Partition& whole,
                                                  const std::vector<std::uint32_t>& rows,
                                                  const Traffic& made);

}  // namespace traffic
}  // namespace orrery::models
