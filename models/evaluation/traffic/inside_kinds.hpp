#pragma once
// Collectives inside blocks, by what they put on the links of their groups: those of one
// communicator and queue with one pattern are one kind, of which a group has one at a time.

#include <utility>
#include <vector>

#include "models/evaluation/traffic/templates.hpp"

namespace orrery::models::traffic {

struct InsideKind {
  std::uint16_t communicator = 0;
  Lane queue = Lane::tensor;
  FlowShape shape;  // of those, the one that takes most of its ports
};

struct InsideKinds {
  std::vector<InsideKind> all;
  InsideCollectives of_operations;                            // without structures
  std::vector<std::pair<std::uint32_t, std::uint32_t>> used;  // class, kind
};

InsideKinds inside_kinds_of(const PricedProgram& priced);

/// Why a collective inside a block could begin before an earlier phase of its rank has ended, which
/// the sweep does not look ahead for: such collectives are on two queues, or need no kernel of
/// their phase, which follows one without any. Nothing: none can.
std::optional<std::string> unordered_inside(const Program& program);

}  // namespace orrery::models::traffic
