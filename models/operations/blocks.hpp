#pragma once
// The blocks of a transformer: layers, embedding, head with loss, optimizer and gradient
// compression. Operands are stated by their unsharded shape and their sharding (layouts.hpp);
// collectives between layouts and recomputation are left to the lowering.
//
// Shapes: tokens T = micro_batch * seq_len; h hidden; q, kv columns of queries and of keys or
// values; f MLP; V vocabulary.

#include <cstdint>
#include <utility>

#include "hardware/gpu/gpu.hpp"
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
  std::string_view generation = "other";  // name of the GPU's generation
  std::int64_t node_gpus = 0;             // GPUs of a node; 0: any tensor group fits into one
  const Registry<Schedule>* schedules = &builtin_schedules();

  /// The same inputs for another model.
  BlockInputs of(const Model& other, const Plan& own) const {
    return {other, own, software, generation, node_gpus, schedules};
  }
  BlockInputs of(const Model& other) const { return of(other, plan); }
};

/// Tokens of a micro-batch, before any cut.
inline std::int64_t tokens_of(const Plan& plan) {
  return plan.batch.micro * plan.batch.seq_len;
}

/// Format in which gradients are accumulated and reduced: the stack's choice, or fp64 for a plan in
/// fp64.
DType gradient_dtype(const Plan& plan, const Software& software);
/// Format of master weights and of full moments.
DType master_dtype(const Plan& plan);

/// Do norms add a bias? RMS norms have none.
bool has_norm_bias(const Model& model);

/// A forward block and its backward, or compression and decompression. Operands that forward saves
/// and backward does not read become temporaries.
struct BlockPair {
  BlockPair(Block first, Block second) : forward{std::move(first)}, backward{std::move(second)} {
    drop_unsaved(forward, backward);
  }

  Block forward, backward;
};

/// For plans that train adapters alone: marks the other parameters as frozen and removes from
/// backward every operation that no adapter's gradient depends on. `passes_gradient`: an earlier
/// layer is trained, so the input's gradient is needed, too.
void freeze(BlockPair& pair, bool passes_gradient);

/// Where a layer is in a model whose decoder attends to an encoder. What blocks then pass on
/// besides the rows between neighbours, each under one name (Role::carried):
///   target, target.grad    the decoder's embedding, which its first layer reads
///   encoded, encoded.grad  what cross-attention reads; its gradient is the sum over all of them
struct LayerPlace {
  bool ends_encoder = false;    // writes `encoded`, after the final norm
  bool begins_decoder = false;  // reads `target`
  bool ends_crossing = false;  // of the layers with cross-attention the last, in backward the first

  friend bool operator==(const LayerPlace&, const LayerPlace&) = default;
};

/// For an encoder's layer, the plan is that of its own sequences.
BlockPair layer_blocks(const BlockInputs& inputs, const Layer& layer, LayerPlace place = {});
BlockPair embedding_blocks(const BlockInputs& inputs);
/// The embedding of an encoder's tokens (Role::source), of a model that has its tables.
BlockPair source_embedding_blocks(const BlockInputs& inputs);
/// Final norm, vocabulary projection and loss. A tied head on the embedding's pipeline stage has no
/// weight of its own.
BlockPair head_blocks(const BlockInputs& inputs);

/// Appends the multi-token-prediction modules (MTP) to a head: for each module the embedding of the
/// next token, the norms and the matrix that join it to the module's input, a layer and the head;
/// backward in reverse order. The module's layer is not recomputed.
void add_mtp_modules(const BlockInputs& inputs, Block& forward, Block& backward);
/// Puts ELECTRA's generator before an embedding, and its backward after it: the embedding of the
/// masked tokens, the generator's layers and its head. The tokens that it would sample are not
/// computed.
BlockPair with_generator(const BlockInputs& inputs, const BlockPair& embedding);

/// Puts a frozen encoder of images and its projector before an embedding (FrontEncoder of
/// models/model/model.hpp), and the projector's backward after it.
BlockPair with_front(const BlockInputs& inputs, const BlockPair& embedding);

/// Puts the embedding of an encoder's tokens, or convolutions of its frames, before the decoder's
/// embedding, and their backward after it.
BlockPair with_source(const BlockInputs& inputs, const BlockPair& embedding);
/// The plan as an encoder's layers run it: sequences of the source.
Plan source_plan(const BlockInputs& inputs);

/// Sum of squares of this rank's `elements` gradients, before the sum over ranks.
Block gradient_norm_block(const BlockInputs& inputs, std::int64_t elements);
/// AdamW on the `elements` parameters that this rank updates: master weights in fp32 (fp64),
/// moments in the plan's format, working copy in the storage format.
Block adam_block(const BlockInputs& inputs, std::int64_t elements);
/// The same of elements whose state the GPU has even where others are offloaded.
Block adam_on_gpu_block(const BlockInputs& inputs, std::int64_t elements);

/// Muon on one matrix of `rows` x `columns` that this rank updates. Five steps of a Newton-Schulz
/// iteration in the storage format make its columns, or its rows if those are fewer, orthonormal:
///   X = G / |G|;  five times  A = X X',  B = b A + c A A,  X = a X + B X
/// with 4 m^2 n + 2 m^3 FLOPs each, m being the smaller extent; every other operation is a kernel
/// of its own.
/// Source  NVIDIA-NeMo/Emerging-Optimizers fd77292, OrthogonalizedOptimizer.step and newton_schulz
///         under fp32_matmul_prec "medium"; NVIDIA/Megatron-LM core_v0.16.0, TensorParallelMuon in
///         mode "blockwise", where each tensor-parallel rank iterates on its own part
Block muon_block(const BlockInputs& inputs, std::int64_t rows, std::int64_t columns);

/// The blocks of a plan's gradient compression, for a bucket of `elements` gradients: before its
/// collective, between its two collectives if there are two, and after the last.
struct CompressionBlocks {
  Block compress, second_step, decompress;
};
/// fp16: casts the bucket, and back.
/// top-k: selects the bucket's largest gradients with their indices and keeps the rest in the
/// residual; after the all-gather, clears the bucket and adds up the values of all ranks. Counted
/// as one pass: the selection costs nothing on top of the memory traffic.
/// power-sgd: the bucket as a matrix M is approximated by factors P Q':
///   compress     M = residual += gradients;  P = M Q, with the Q of the step before
///   second_step  P's columns orthogonalised;  Q = M' P;  residual -= P Q'
///   decompress   gradients = P Q'
/// P is summed over ranks after `compress`, Q after `second_step`.
/// Source  Vogels et al. 2019, arXiv 1905.13727, algorithms 1 and 2
/// int8 (ByteGrad): an all-to-all gives each replica its share of the bucket from all others, with
/// the range (least and largest number) before the bytes; the replica adds them up, and an
/// all-gather hands its sum to all.
///   compress     range of each share;  bytes = round(255 (g - least) / (largest - least))
///   second_step  sum of the received shares in fp32;  its range and bytes
///   decompress   gradients = the gathered sums, widened
/// Source  Gan et al. 2021, "BAGUA", arXiv 2107.01499, section 3 (C_LP_S without error
///         compensation); github.com/BaguaSys/bagua, algorithms/bytegrad.py
/// Errors  a plan without compression: ContractError
CompressionBlocks compression_blocks(const BlockInputs& inputs, std::int64_t elements);

/// Bytes of Adam's two moments of `elements` parameters, with the scales of their blocks, and of
/// Muon's one.
Bytes moments_bytes(const Plan& plan, std::int64_t elements);
Bytes momentum_bytes(const Plan& plan, std::int64_t elements);

/// Trained parameters (elements) in one rank's shard of a block.
std::int64_t parameters_of(const Block& block);
/// The same, counting only the tensors of this view of the mesh.
std::int64_t parameters_of(const Block& block, MeshView view);
/// Bytes of the frozen parameters in one rank's shard of a block.
Bytes frozen_bytes_of(const Block& block);

}  // namespace orrery::models
