#pragma once
// Operations: one kernel, collective or copy each, with every attribute that an executor or a cost
// model needs. How long an operation takes is left out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/activation.hpp"
#include "models/model/norm.hpp"
#include "models/model/routing.hpp"
#include "models/program/attention_shape.hpp"
#include "models/program/ids.hpp"
#include "models/program/op_kind.hpp"
#include "models/program/operand.hpp"

namespace orrery::models {

using OpId = std::uint16_t;
inline constexpr OpId block_input = 0xffff;  // as a dependency: the bound input is ready

/// Shape of a GEMM, whether it reads its operands transposed and whether it accumulates.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;  // [m, k] x [k, n], 2mnk FLOPs
  std::int64_t batch = 1;            // number of GEMMs, for batched_gemm and grouped_gemm
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // into fp32 accumulators: writes[0] += product
  bool subtract = false;    // negates the product: with accumulate, writes[0] -= product
};

/// Which GEMM of an unfused attention a `batched_gemm` is, and so which heads of its operands it
/// multiplies: S = Q K' are the scores, P their softmax, C = P V the context.
enum class AttentionGemm : std::uint8_t {
  none,
  scores,            // S = Q K'
  context,           // C = P V
  weights_gradient,  // dP = dC V'
  value_gradient,    // dV = P' dC
  query_gradient,    // dQ = dS K
  key_gradient,      // dK = dS' Q
};
std::string_view name(AttentionGemm product);

/// How a `permute` or `unpermute` moves rows. A slot is room for one row of one expert from one
/// rank; slots without a token are rows of zeros.
enum class RowMove : std::uint8_t {
  none,
  dispatch,  // reads tokens, chosen: copies a token to a slot of each of its experts
  combine,   // reads slots, weights, chosen: weighted sum of a token's slots, which are kept
  combine_backward,   // reads gradient, weights, chosen, slots kept: gradients of slots and weights
  dispatch_backward,  // reads slots, chosen: the sum of a token's slots
  by_expert,          // reorders slots from [rank, expert] to [expert, rank]
  by_rank,            // reorders slots from [expert, rank] to [rank, expert]
};
std::string_view name(RowMove move);

/// Heads in one row of a fused QKV tensor: query heads, then key heads, each `dim` columns wide.
/// The columns after them are values.
struct HeadColumns {
  std::int64_t queries = 0, keys = 0, dim = 0;
};

/// An operand in a layout other than its own Operand::sharding.
struct OperandUse {
  OperandId operand = 0;
  Sharding sharding;
};

/// The part of a step that an operation belongs to; its launch costs the host differently in each.
enum class Pass : std::uint8_t { forward, backward, recompute, step };

/// Whether a copy continues between host memory and files on its node's storage, and which way.
enum class FileUse : std::uint8_t { none, read, write };

/// One kernel, collective or copy on one queue.
struct Operation {
  OpKind kind = OpKind::gemm;
  Lane queue = Lane::compute;
  Pass pass = Pass::forward;
  TimeClass time_class = TimeClass::memory_bound;
  std::string name;  // unique in its block: "qkv", "qkv.dgrad"
  std::vector<OperandId> reads, writes;
  std::vector<OpId> after;    // operations to wait for besides queue order; filled by `link`
  DType dtype = DType::bf16;  // format of the arithmetic
  GemmShape gemm{};
  /// Of a grouped_gemm: rows of each expert. Without transpose_a they are rows of reads[0] and of
  /// writes[0], reads[1] holds one weight matrix per expert, and they add up to m. With transpose_a
  /// they are rows of both reads, writes[0] holds one matrix per expert, and they add up to k.
  std::vector<std::int64_t> group_rows;
  AttentionShape attention{};
  SequencePart sequence{};
  AttentionGemm attention_gemm = AttentionGemm::none;  // of a batched_gemm
  Activation activation = Activation::gelu;            // of activation and activation_backward
  Collective collective = Collective::all_reduce;
  std::uint16_t communicator = 0;  // of a collective, index into Program::communicators
  /// Operands that it reads or writes in a layout other than their own; resharding
  /// (models/lowering/reshard.hpp) inserts the collectives between the two layouts and empties both
  /// lists. An operand that is needed but not read is gathered ahead, for a later operation.
  std::vector<OperandUse> needs, makes;
  HeadColumns heads;            // of rotary positions, and of a norm over each head
  bool by_position = false;     // of an add: reads[1] is a table with a row for each position
  bool attention_core = false;  // repeated by recomputation of core_attn
  bool mlp = false;             // repeated by recomputation of mlp
  bool moe = false;             // repeated by recomputation of moe
  bool adapter = false;         // of a LoRA adapter, and collectives for its operands
  bool latent_up = false;       // repeated by recomputation of mla_up_proj: latents to heads
  bool host_waits = false;      // the host waits until it has ended
  double epsilon = 0;           // of norms
  /// Of rotary positions: radians per position of each pair (i, i + pairs) of a head's columns; the
  /// columns after them are not rotated.
  std::vector<double> frequencies;
  double magnitude = 1;  // of rotary positions: factor on cosines and sines
  Norm norm = Norm::layer_norm;
  /// Of an all-to-all that sends a token once to each node, and of the operations that make its
  /// rows.
  TokenCopies deduplicated;
  Routing routing;                // of route and route_backward
  RowMove moves = RowMove::none;  // of permute and unpermute
  bool fused = false;             // ... in one kernel, which reads and writes only its operands
  std::int64_t source_ranks = 1;  // of by_expert and by_rank: ranks that send rows to an expert
  bool drops =
      false;  // of dispatch: tokens without a slot are left out; otherwise that is an error
  /// Of an all-to-all, and of the operations that make its rows: it overlaps with the opposite
  /// pass, backward or forward, of another micro-batch.
  bool overlaps_micro_batch = false;
  /// Of the GEMMs and the loss of a fused cross-entropy: the number of pieces that their rows are
  /// cut into. All of these operations process one piece before any processes the next.
  std::int64_t pieces = 1;
  FileUse files = FileUse::none;  // of a copy; none: between the GPU and its host
  std::int64_t vocabulary = 0;    // of a loss: vocabulary over all shards, without padding
  Flops flops{};                  // multiply-adds count two; causal attention counts half
  Bytes bytes{};                  // memory traffic, or payload of a collective (nccl-tests size)
};

}  // namespace orrery::models
