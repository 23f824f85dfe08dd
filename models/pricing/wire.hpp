#pragma once
// Prices collectives and transfers: the cost models of models/network/collectives, at the share of
// their rate that the stack reaches. The part of a collective that a stack hides still occupies its
// queue; only the exposed time, for which other queues wait, is shorter.
//   occupied = model / data_efficiency (data), model / dispatch_efficiency (experts, across nodes),
//              model (tensor);  duration = exposed * occupied
// The hidden rest is before or after that:
//   reductions, and gathers of ZeRO-3   lead: pieces are sent while the rest, or an earlier unit,
//                                       is computed
//   gathers of the tensor group         trail: the GEMM that reads them begins with the first piece
//   gathers after an optimizer          carried into the forward of the next step
// Leaves out that queues of one rank share links: models/pricing/rank_load.hpp.

#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/network/collectives/collective.hpp"
#include "models/network/placement.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// How ranks are placed, whether siblings share links, and NCCL's tuner (null: the fastest
/// algorithm runs).
struct WirePlaces {
  LinkSharing sharing = LinkSharing::with_siblings;
  AxisOrder order{};
  const NcclSettings* nccl = nullptr;
};

/// How to price a collective whose rows hold these copies of each token. A deduplicating dispatcher
/// sends the copies of a token between nodes once.
CollectivePricing pricing_of(const TokenCopies& copies, const GroupShape& group,
                             const WirePlaces& places = {});

/// Prices everything that one Program sends.
class WirePricer {
 public:
  WirePricer(const Program& program, const hardware::Cluster& cluster, const Software& software,
             WirePlaces places = {});

  int ranks(std::uint16_t communicator) const { return groups_[communicator].ranks; }

  /// Price of a collective in a block, without its launch. Only those of tensor groups have a
  /// hidden part.
  PricedOperation in_block(const Operation& op) const;
  /// Price of a joint collective, on comm:dp, without its launch. Its hidden part is its lead.
  PricedOperation joint(const JointCollective& joint) const;
  /// Price of one transfer of a channel: the time of the slowest pair of neighbours, the links of
  /// its own pair.
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

/// Time in which a rank reads or writes this much in files of its node, while the other ranks there
/// do the same.
Time file_time(Bytes bytes, FileUse use, const Program& program, const hardware::Cluster& cluster);

/// Moves the hidden parts of gathers after an optimizer to the beginning of the step:
/// PricedProgram::carried.
void carry_gathers(PricedProgram& priced);

}  // namespace orrery::models
