#pragma once
// The table of collective algorithms: each is one file of this folder and one row in builtins.cpp.
// All users iterate it: candidates, `show collectives`, the flags of `orrery collective`, fits, and
// the tests.

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/program/ids.hpp"
#include "sim/registry.hpp"

namespace orrery::models {

struct CollectiveTime;
namespace collectives {
struct CostCall;
}

/// Traffic pattern of a collective between nodes.
///   none       no traffic between nodes
///   pair       one node to another
///   ring       every node to the next of a ring, all edges at the same rate
///   tree       every node to its parents and children in two trees, all edges at the same rate
///   all_pairs  every rank to every other
///   star       all ranks and one root
enum class TrafficPattern : std::uint8_t { none, pair, ring, tree, all_pairs, star };
inline constexpr Words<TrafficPattern, 6> traffic_pattern_words{
    {{TrafficPattern::none, "none"},
     {TrafficPattern::pair, "pair"},
     {TrafficPattern::ring, "ring"},
     {TrafficPattern::tree, "tree"},
     {TrafficPattern::all_pairs, "all_pairs"},
     {TrafficPattern::star, "star"}}};

/// When an algorithm is a candidate: wherever it can run (usual), or only where a user names it,
/// because no measured library picks it by itself.
enum class AlgorithmUse : std::uint8_t { usual, named };

/// One row of the table.
struct CollectiveAlgorithm {
  /// The cost model: one time per protocol that could run; empty if the algorithm cannot run here.
  std::vector<CollectiveTime> (*times)(const collectives::CostCall& call);
  std::vector<Collective> operations;
  TrafficPattern pattern = TrafficPattern::ring;  // of groups that span nodes
  AlgorithmUse use = AlgorithmUse::usual;
  std::string_view nccl{};  // its name in NCCL_ALGO; empty: not one of NCCL's
  std::string_view paper;

  bool performs(Collective collective) const {
    for (const Collective each : operations) {
      if (each == collective) return true;
    }
    return false;
  }
};

/// The table: models/network/collectives/builtins.cpp.
const Registry<CollectiveAlgorithm>& builtin_algorithms();

}  // namespace orrery::models
