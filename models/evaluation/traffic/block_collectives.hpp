#pragma once
// The kinds of collectives inside blocks, by the traffic that they put on links: those of one
// communicator and queue with one pattern and number of flows are one kind, of which a group runs
// one at a time.

#include <utility>
#include <vector>

#include "models/evaluation/traffic/sources.hpp"

namespace orrery::models::traffic {

struct BlockCollectiveKind {
  std::uint16_t communicator = 0;
  Lane queue = Lane::tensor;
  FlowShape shape;  // with the largest share of its ports among them
};

struct BlockCollectiveKinds {
  std::vector<BlockCollectiveKind> all;
  BlockCollectives of_operations;                             // without splits
  std::vector<std::pair<std::uint32_t, std::uint32_t>> used;  // class, kind
};

BlockCollectiveKinds block_collective_kinds(const PricedProgram& priced);

/// Why a collective inside a block could begin before an earlier phase of its rank has ended, which
/// the sweep does not handle: such collectives are on two queues, or one needs no kernel of its
/// phase, which follows a phase without such collectives. Nullopt if none can.
std::optional<std::string> unordered_block_collectives(const Program& program);

}  // namespace orrery::models::traffic
