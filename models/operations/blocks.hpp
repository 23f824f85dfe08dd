#pragma once
// The blocks of a transformer, before the lowering adds collectives and recomputation: layers,
// embedding, head with loss, and the optimizer. Operands are stated uncut with how they are cut
// (layouts.hpp).
//
// Shapes: tokens T = micro_batch * seq_len; h hidden; q, kv columns of queries and of keys or
// values; f MLP; V vocabulary.

#include <cstdint>
#include <utility>

#include "hardware/gpu.hpp"
#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "models/program/block.hpp"
#include "models/schedules/schedule.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// What the blocks of one step are built from.
struct BlockInputs {
  const Model& model;
  const Plan& plan;
  const Software& software;
  std::string_view generation = "other";  // of the GPU, by name
  std::int64_t node_gpus = 0;             // 0: more than any tensor group has ranks
  const Registry<Schedule>* schedules = &builtin_schedules();

  /// The same of another model.
  BlockInputs of(const Model& other) const {
    return {other, plan, software, generation, node_gpus, schedules};
  }
};

/// Tokens of a micro-batch.
inline std::int64_t tokens_of(const Plan& plan) {
  return plan.micro_batch * plan.seq_len;
}

/// What gradients are added up and reduced in: the stack's choice, fp64 where the plan computes so.
DType gradient_dtype(const Plan& plan, const Software& software);

/// Do norms add a bias? RMS norms have none.
bool has_norm_bias(const Model& model);

/// One direction of a block and the one that undoes it.
struct BlockPair {
  BlockPair(Block there, Block back) : forward{std::move(there)}, backward{std::move(back)} {
    drop_unsaved(forward, backward);
  }

  Block forward, backward;
};

/// Adapters alone are trained: marks the other parameters, and takes from backward what leads to no
/// adapter's gradient. `passes_gradient`: something trained lies below.
void freeze(BlockPair& pair, bool passes_gradient);

BlockPair layer_blocks(const BlockInputs& inputs);
BlockPair embedding_blocks(const BlockInputs& inputs);
/// Final norm, vocabulary projection and loss. A tied head on the embedding's stage has no weight
/// of its own.
BlockPair head_blocks(const BlockInputs& inputs);

/// Appends to a head what predicts further tokens: for each module the next token's row, the norms
/// and the matrix that join it to what is below, a layer and the head; backward the same, last
/// module first. The module's layer is not recomputed.
void predict_further(const BlockInputs& inputs, Block& forward, Block& backward);
/// Puts a generator before an embedding, and its backward after it: the masked tokens' rows, its
/// layers and its head. Which tokens it makes up is not computed.
BlockPair with_generator(const BlockInputs& inputs, const BlockPair& embedding);

/// Sum of squares of `elements` gradients, before the norm is agreed.
Block gradient_norm_block(const BlockInputs& inputs, std::int64_t elements);
/// AdamW on `elements` owned parameters: master and moments in fp32 (fp64), moments perhaps in
/// fewer bits, working copy in storage format.
Block adam_block(const BlockInputs& inputs, std::int64_t elements);

/// A bucket of `elements` gradients on its way to other ranks, and back.
BlockPair narrowing_blocks(const BlockInputs& inputs, std::int64_t elements);
/// The largest of them with their places, what is left kept in the residual; and every rank's added
/// up in the cleared bucket. In one pass: selecting itself costs nothing on top of the traffic.
BlockPair top_k_blocks(const BlockInputs& inputs, std::int64_t elements);
/// PowerSGD's factors of the bucket as a matrix M, whose sum over ranks goes on as P Q':
///   first   M = residual += gradients;  P = M Q, with the Q of the step before
///   second  P's columns orthogonalised;  Q = M' P;  residual -= P Q'
///   back    gradients = P Q'
/// between which ranks sum P, and then Q.
/// Source  Vogels et al. 2019, arXiv 1905.13727, algorithms 1 and 2
struct LowRankBlocks {
  Block first, second, back;
};
LowRankBlocks low_rank_blocks(const BlockInputs& inputs, std::int64_t elements);

/// A bucket in 8 bits: each replica sends every other its share's numbers, `range` bytes of least
/// and largest number before them; adds up what arrives; and sends its sums to all alike.
///   first   each share's least and largest number;  bytes = round(255 (g - least) / (largest -
///           least))
///   second  sum of the arrived shares in fp32;  its range and bytes
///   back    gradients = all sums
/// Source  Gan et al. 2021, "BAGUA", arXiv 2107.01499, section 3 (C_LP_S without error
///         compensation); github.com/BaguaSys/bagua, algorithms/bytegrad.py
struct ByteBlocks {
  Block first, second, back;
};
ByteBlocks byte_blocks(const BlockInputs& inputs, std::int64_t elements);

/// What Adam's two moments of so many parameters take, with the scales of their blocks.
Bytes moments_bytes(const Plan& plan, std::int64_t elements);

/// Trained parameters (elements) of this rank's share of a block; what its frozen ones take.
std::int64_t parameters_of(const Block& block);
/// Of them, those that this view's replicas hold.
std::int64_t parameters_of(const Block& block, MeshView view);
Bytes frozen_bytes_of(const Block& block);

}  // namespace orrery::models
