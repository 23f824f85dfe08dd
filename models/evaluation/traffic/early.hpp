#pragma once
// A step until its first joint collective, in which ranks and links that only joint collectives
// tell apart are alike: replicas of a pipeline mostly, for all but the last of a step. It is
// evaluated so until a rank stands at its first joint collective. Then each rank, channel and link
// goes on by itself from where those that stood for it stand.
//
// Exact, because until then no joint collective is on any link, and the partition is equitable for
// all else; what crosses a link that could be overloaded later has its events now. Leaves out steps
// of several jobs and those with collectives inside blocks that others decide.

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

/// Of one job's Traffic with its partition; nothing where it would not be much smaller.
/// rows  of that Traffic, by class of suspects
std::shared_ptr<const EarlyTraffic> early_traffic(const FoldInput& input, const Partition& whole,
                                                  const std::vector<std::uint32_t>& rows,
                                                  const Traffic& made);

}  // namespace traffic
}  // namespace orrery::models
