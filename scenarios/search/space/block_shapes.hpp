#pragma once
// What plans of one shape share: the blocks of their layers, lowered and priced once. Two plans
// have one shape if they differ only in how layers, micro-batches and state are spread over ranks:
// pipeline, virtual stages, schedule, data, ZeRO, batch, nodes. Their blocks are those of a plan
// without a pipeline on the fewest nodes that hold its groups, with one micro-batch. Leaves out
// what only lengthens blocks: kernels that are slower next to communication, collectives that share
// links with their siblings, the offload of a part of the layers, and the modules that layers
// recompute where others recompute more.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/evaluation/max_plus_map.hpp"
#include "scenarios/search/space/plan_space.hpp"

namespace orrery::scenarios {

/// Picoseconds from a state of a rank before a pass of a chunk, forward or backward, to one after
/// it: each is the length of a path. models::never where there is none.
struct PassTimes {
  std::int64_t compute = 0;   // compute lane free before -> compute lane free after
  std::int64_t leaves = 0;    // compute lane free before -> output ready
  std::int64_t arrives = 0;   // input ready -> compute lane free after
  std::int64_t through = 0;   // input ready -> output ready
  std::int64_t host = 0;      // host before -> host after
  std::int64_t launched = 0;  // host before -> compute lane free after
  std::int64_t sent = 0;      // host before -> output ready
  std::int64_t kernels = 0;   // kernels alone, one after another
};

/// A chunk's pass as one phase, and as the phases into which gradient buckets and gathers may cut
/// it: later phases then wait for the compute lane, but not for an earlier one's output.
struct PassCosts {
  PassTimes whole, cut;
};

/// Layers of one chunk.
struct ChunkLayers {
  std::int64_t first = 0, count = 0;
  bool has_embedding = false, has_head = false;
  /// Of a plan of which a part of the layers recomputes: as in RecomputeChoices.
  std::int64_t recomputed = 0, every = 1;
};

/// What a chunk's layers take and hold on one rank.
struct ChunkCosts {
  PassCosts forward, backward;
  std::int64_t parameters = 0;         // trained, before sharding of state
  std::int64_t expert_parameters = 0;  // of these, of experts with replicas of their own
  Bytes saved{};                       // activations of a micro-batch, from forward to backward
  Bytes temporaries{};                 // of the largest block of backward
  Bytes largest_layer{};               // weights of the largest layer
  Bytes layers{};                      // weights of all its layers, without embedding and head
};

/// Names all of a plan on which its blocks depend, on nodes of so many GPUs.
std::string shape_key(const models::Plan& plan, int node_gpus);

/// Names all of a plan on which its joint instructions depend, gathers of ZeRO-3 included: all
/// fields but those of recomputation in every layer and, where gradients are reduced once a step,
/// the micro-batch.
std::string joints_key(const PlacedPlan& placed);

class BlockShape {
 public:
  /// Of this plan and of all with the same key.
  BlockShape(const PlanQuery& query, const PlacedPlan& placed);

  /// Costs of a chunk; remembered. Not to be called by two threads at once.
  const ChunkCosts& costs(const ChunkLayers& layers);

  Time step_launch() const { return step_launch_; }
  Time transfer_launch() const { return transfer_launch_; }

 private:
  struct Kind {
    models::MaxPlusMap forward, backward;
    std::int64_t forward_kernels = 0, backward_kernels = 0;
    std::int64_t parameters = 0, expert_parameters = 0;
    Bytes saved{}, temporaries{};
    Bytes weights{};  // trained parameters in the format in which they are stored
    bool is_layer = false;
  };
  struct Run {
    std::uint32_t kind = 0;
    std::int64_t count = 0;
  };

  /// The kinds of a plan's blocks, in the order of its Program.
  std::vector<Kind> kinds_of(const PlanQuery& query, const PlacedPlan& whole);
  std::vector<Run> runs_of(const ChunkLayers& layers) const;
  PassCosts pass_of(const std::vector<Run>& runs, models::MaxPlusMap Kind::*map,
                    std::int64_t Kind::*kernels) const;

  std::vector<Kind> kinds_;        // those that recompute after the others, where a part does
  std::uint32_t recomputing_ = 0;  // from a kind to the one that recomputes; 0: none does
  std::vector<std::uint32_t> kind_of_layer_;
  std::uint32_t embedding_ = 0, head_ = 0;
  bool alike_ = false;  // all layers are of one kind
  Time step_launch_{}, transfer_launch_{};
  std::unordered_map<std::uint64_t, ChunkCosts> known_;
};

/// The shapes of several searches for one model and stack on nodes of one type, in any numbers:
/// each is lowered and priced once. Not to be used by two searches at once.
class BlockShapes {
 public:
  /// A shape that is made when it is first needed.
  using Slot = std::unique_ptr<BlockShape>;
  /// Stays where it is.
  Slot& slot(const std::string& key) { return known_[key]; }

 private:
  std::unordered_map<std::string, Slot> known_;
};

}  // namespace orrery::scenarios
