#pragma once
// Executes the blocks of a forward, backward or weight-gradient phase: binds their operands for a
// layer and a micro-batch, launches kernels one by one or as CUDA graphs, and starts the
// collectives between them. A collective of a block ends before the operation that depends on it,
// before the next one on its lane, and at the latest at the block's end. Collectives between blocks
// (gradient reductions, weight gathers) are in reducer.hpp.

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "executor/run/blocks/expert_rows.hpp"
#include "executor/run/blocks/graph_cache.hpp"
#include "executor/run/blocks/sequence_moves.hpp"
#include "executor/run/reducer/reducer.hpp"
#include "executor/run/samples.hpp"

namespace orrery::executor {

/// Runs the blocks of one rank.
class Blocks {
 public:
  Blocks(const RankContext& rank, Weights& weights, Reducer& reducer, Samples& samples,
         HeldMemory& memory);

  /// `loss_scale` is the gradient that backward begins from: the loss scale divided by the number
  /// of labelled tokens of the global batch.
  void begin_step(double loss_scale);
  /// Runs the phase of a forward, backward or weight-gradient instruction.
  void run(models::Token i);
  const GraphCounts& graphs() const { return graph_cache_.counts(); }
  const RoutedBytes& routed() const { return expert_rows_.sent(); }

 private:
  /// A block bound to a layer and a micro-batch.
  struct Use {
    models::Token instruction = 0;
    std::uint32_t block = 0;
    std::int64_t layer = -1;
    std::array<std::byte*, base_count> bases{};  // null: the block has no operand there

    std::byte*& at(Base base) { return bases[static_cast<std::size_t>(base)]; }
  };

  void place_parameters(std::uint32_t block, std::int64_t layer);
  void empty_buckets(models::Token i);
  void run_layer(models::Token i, const models::Invocation& run, std::int64_t layer);
  std::byte* saved_of(models::Token i, const ChunkPlan& chunk, std::size_t place) const {
    return rank_.arena + rank_.plan.bound(i).saved + chunk.layers[place].saved;
  }
  /// Where the gradient that arrives at a layer is kept for its weight gradients; null: no weight
  /// gradient reads it, so it stays where the previous layer of backward wrote it.
  std::byte* delayed_arrival(models::Token i, const ChunkPlan& chunk, std::size_t place) const;
  std::byte* output_of(models::Token i, const ChunkPlan& chunk, std::size_t place);

  // run_block.cpp: one block
  void run_block(const Use& use);
  void bind_operands(Use use);
  void run_operation(const Use& use, std::size_t index);
  void run_kernel(const models::Operation& op) {
    run_on(rank_.device, op, views_, executor::place_of(op, place_, first_source_row_));
  }
  std::size_t run_pieces(const Use& use, std::size_t first);
  void gather_piece(const Use& use, const models::Operation& op, std::vector<View>& parts,
                    std::int64_t row);
  void copy_offloaded(const Use& use, std::size_t index);
  void start_collective(const Use& use, std::size_t index);
  PendingCall pending_of(const Use& use, std::size_t index);
  void start_on_context(const Use& use, std::size_t index);
  void ring_step(const models::Operation& op, const SequenceMoves& moves, PendingCall pending);
  void leave_keys(const models::Operation& op);
  void move(const std::vector<RowsMove>& moves);
  void end_collectives();
  void wait_for(const models::Operation& op);

  const RankContext& rank_;
  Weights& weights_;
  Reducer& reducer_;
  Samples& samples_;
  GraphCache graph_cache_;
  ExpertRows expert_rows_;
  /// By block and the layer that it is bound to: for each operand that is a parameter or gradient,
  /// its first element in the layout.
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<std::int64_t>> elements_;
  std::int64_t first_source_row_ = 0;  // as Place::first_row, of an encoder's tokens
  Place place_;                        // after it, which is found together with it
  std::vector<View> views_;            // of the running block's operands
  std::byte* flowing_ = nullptr;       // the gradient passed from layer to layer in backward
  std::byte* on_host_ = nullptr;       // offloaded activations in host memory
  int next_edge_ = 0;                  // which edge buffer the next layer writes
  std::vector<PendingCall> pending_;
  std::vector<RowsMove> arriving_;  // unpacking copies, due when `pending_` has ended
};

}  // namespace orrery::executor
