#pragma once
// What collectives and transfers take of their lanes and links: the cost models of
// models/network/collectives, at the share of them that the stack reaches. What the stack hides of
// a transfer still occupies its queue; only what others see of it is shorter.
//   occupied = model / data_efficiency (data), model (tensor);  duration = exposed * occupied
// The rest is before or after that:
//   reductions, and gathers of ZeRO-3   lead: pieces go out while the rest is computed, or earlier
//                                       units are
//   gathers of the tensor group         trail: the product that reads them begins with the first
//   gathers after an optimizer          carried into the forward of the next step
// Leaves out, across queues, links that are shared: models/pricing/rank_load.hpp.

#include <vector>

#include "hardware/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/network/collectives/collective.hpp"
#include "models/network/placement.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Which ranks are next to each other, whether siblings count, and who chooses algorithms.
struct WirePlaces {
  LinkSharing sharing = LinkSharing::with_siblings;
  AxisOrder order{};
  const NcclSettings* nccl = nullptr;
};

/// How a collective is priced whose rows hold so many copies of each token, 0 where no two rows are
/// alike: copies cross between nodes once, as dispatchers do that know of them.
CollectivePricing pricing_of(std::int64_t copies, const GroupShape& group,
                             const WirePlaces& places = {});

/// Prices everything that one Program sends.
class WirePricer {
 public:
  WirePricer(const Program& program, const hardware::Cluster& cluster, const Software& software,
             WirePlaces places = {});

  int ranks(std::uint16_t communicator) const { return groups_[communicator].ranks; }

  /// A collective of a block; without its launch. What a stack hides is of tensor groups alone.
  PricedOperation in_block(const Operation& op) const;
  /// A joint collective, on comm:dp; without its launch. What it hides leads.
  PricedOperation joint(const JointCollective& joint) const;
  /// One transfer of a channel. Time of the worst pair of neighbours, links of its own.
  CollectiveTime channel(const Channel& channel) const;

 private:
  PricedOperation joint_of(const JointCollective& joint, const CollectiveTime& whole) const;
  CollectiveTime modelled(Collective kind, Bytes bytes, std::uint16_t communicator) const;
  CollectiveTime dispatched(const Operation& op) const;
  Time sums_time(const JointCollective& joint) const;
  Time fetch_time(const JointCollective& joint) const;
  bool crosses_nodes(const Channel& channel) const;

  const Program& program_;
  const hardware::Cluster& cluster_;
  const Software& software_;
  WirePlaces places_;
  std::vector<GroupShape> groups_;
};

/// What a rank moves between its memory and files of its node, while the other ranks there do
/// alike.
Time file_time(Bytes bytes, FileUse use, const Program& program, const hardware::Cluster& cluster);

/// Moves what gathers after an optimizer hide to the beginning of the step.
void carry_gathers(PricedProgram& priced);

}  // namespace orrery::models
