#pragma once
// Lower bounds of a plan's static step and of its memory, without lowering it. Every bound of the
// step is the length of a path in the plan's own Program: a chain of blocks in the order of one
// rank's lanes, and of transfers that take no time, summed from the same picoseconds as the sweep
// (models/evaluation/sweep.hpp). A sweep finds the longest path, so none is above it. Leaves out
// gradient reductions, gathers, the optimizer, and that transfers take time.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "scenarios/search/space/block_shapes.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// Lengths of paths, each below the scheduled step.
///   work   m (sum of F + B over the chunks of the busiest stage), on its compute lane
///   host   what the busiest stage's host launches, one after another
///   fill   the first micro-batch reaches a stage through all stages before it; then that stage's
///          own work; then its last gradient goes back through all stages before it
///   turn   the first micro-batch goes through all chunks and back to a stage; then the rest of
///   that
///          stage's work after its first backward, and back as above
/// F, B   the compute lane's time of a chunk's forward and backward;  m  micro-batches
/// The last backward of each chunk, and with ZeRO-2 and 3 every pass, may be cut into phases.
struct StepPaths {
  Time work{}, host{}, fill{}, turn{};

  Time longest() const { return std::max({work, host, fill, turn}); }
};

/// The rows of StepPaths, for those that look at each.
struct StepPath {
  std::string_view name;
  Time StepPaths::*length;
};
std::span<const StepPath> step_paths();

StepPaths paths_of(const PlanQuery& query, const models::Plan& plan, BlockShape& shape);

/// When the input of each stage's first gradient reduction is ready, at the earliest: the last
/// backward of one of its chunks makes it.
///   min over chunks of m F + (m - 1) B; where the order of passes is known, after the first
///   micro-batch has reached the stage: all of its work but the last backward of its last chunk
///   and, of each other chunk, as many backwards as there are stages
/// Empty where gradients are reduced after every micro-batch, where backward is split, and where
/// the chunks of a stage are not known.
std::vector<Time> before_reductions(const PlanQuery& query, const models::Plan& plan,
                                    BlockShape& shape);

/// The time of the kernels of all passes, on the mean rank.
Time kernels_of(const PlanQuery& query, const models::Plan& plan, BlockShape& shape);

/// Lower bound of the memory of the fullest rank: at its first backward a stage holds parameters,
/// gradients and optimizer state, the activations that its forwards have saved, the largest block's
/// temporaries or with ZeRO-3 the gathered weights of a layer, and what the libraries take.
Bytes memory_floor(const PlanQuery& query, const models::Plan& plan, BlockShape& shape);

/// Lower bounds of a plan. `kernels` is the time of kernels on a rank, the mean over stages.
struct PlanBound {
  Time step{}, kernels{};
  Bytes memory{};
};

/// The bounds of all plans, in their order; each shape is made once, or taken from `shapes`. Empty
/// if `workers` stopped.
std::vector<PlanBound> bounds_of(const PlanQuery& query, const std::vector<PlacedPlan>& plans,
                                 const Workers& workers, BlockShapes& shapes);

}  // namespace orrery::scenarios
