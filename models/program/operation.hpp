#pragma once
// Operations: one kernel, collective or copy each, with all that an executor or a cost model asks.

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

/// Does a GEMM read its operands transposed, and does it add to what is there?
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;  // [m, k] x [k, n], 2mnk FLOPs
  std::int64_t batch = 1;            // products, for batched_gemm and grouped_gemm
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // fp32 accumulators: writes[0] += product
  bool subtract = false;    // the product's sign is turned: writes[0] -= product where it adds
};

/// Which product of an unfused attention a `batched_gemm` is, and so which heads of its operands it
/// multiplies: with S = Q K' the scores, P their softmax, and C = P V the context.
enum class Product : std::uint8_t {
  none,
  scores,            // S = Q K'
  context,           // C = P V
  weights_gradient,  // dP = dC V'
  value_gradient,    // dV = P' dC
  query_gradient,    // dQ = dS K
  key_gradient,      // dK = dS' Q
};
std::string_view name(Product product);

/// Which way a `permute` or `unpermute` moves rows. A slot is room for one row of one expert from
/// one rank; slots that no token takes are rows of zeros.
enum class RowMove : std::uint8_t {
  none,
  dispatch,  // reads tokens, chosen: a token to a slot of each of its experts
  combine,   // reads slots, weights, chosen: the weighted sum of a token's slots; keeps them
  combine_backward,   // reads gradient, weights, chosen, slots kept: their gradients, and weights'
  dispatch_backward,  // reads slots, chosen: the sum of a token's slots
  by_expert,          // slots by rank and then by expert become slots by expert and then by rank
  by_rank,            // and back
};
std::string_view name(RowMove move);

/// Heads next to each other in a row, queries and then keys. The columns after them are values.
struct HeadColumns {
  std::int64_t queries = 0, keys = 0, dim = 0;
};

/// An operand in another layout than the one in which it is held.
struct OperandUse {
  OperandId operand = 0;
  Sharding sharding;
};

/// Which half of training an operation belongs to; the host pays differently for each.
enum class Pass : std::uint8_t { forward, backward, recompute, step };

/// Which way a copy goes between the host's memory and files of its node's storage.
enum class FileUse : std::uint8_t { none, read, write };

/// One kernel, collective or copy on one queue.
struct Operation {
  OpKind kind = OpKind::gemm;
  Lane queue = Lane::compute;
  Pass pass = Pass::forward;
  TimeClass time_class = TimeClass::memory_bound;
  std::string name;  // unique in its block: "qkv", "qkv.dgrad"
  std::vector<OperandId> reads, writes;
  std::vector<OpId> after;    // ends to wait for besides queue order; filled by `link`
  DType dtype = DType::bf16;  // format of the arithmetic
  GemmShape gemm{};
  /// Of a grouped_gemm, each expert's rows: of reads[0] and writes[0], where its weight is
  /// reads[1], one matrix for each expert; with transpose_a, of both reads, and each expert's
  /// product is a matrix of writes[0]. They add up to m, to k with transpose_a.
  std::vector<std::int64_t> group_rows;
  AttentionShape attention{};
  SequencePart sequence{};
  Product product = Product::none;           // of a batched_gemm
  Activation activation = Activation::gelu;  // of activations
  Collective collective = Collective::all_reduce;
  std::uint16_t communicator = 0;  // of a collective, index into Program::communicators
  /// What it needs and makes in another layout than the one in which the operand is held;
  /// resharding adds the collectives between the two, and nothing is left here. What is needed and
  /// not read is fetched ahead, for an operation that follows.
  std::vector<OperandUse> needs, makes;
  HeadColumns heads;            // of rotary positions, and of a norm of each head alone
  bool by_position = false;     // of an add: reads[1] is a table with a row for each position
  bool attention_core = false;  // what recomputation of the core repeats
  bool mlp = false;             // ... and of the MLP
  bool latent_up = false;       // ... and of latents' products up to heads
  bool host_waits = false;      // the host goes on only after its end
  double epsilon = 0;           // of norms
  /// Of rotary positions: radians per position of each pair (i, i + pairs) of a head's columns; the
  /// columns after them are not turned.
  std::vector<double> frequencies;
  double magnitude = 1;  // ... and what cosines and sines are multiplied by
  Norm norm = Norm::layer_norm;
  /// Of an all-to-all that sends a token once to each node that has any of its experts, and of what
  /// makes its rows: how many copies of a token they hold. 0: every row is sent.
  std::int64_t copies = 0;
  Routing routing;                // of route and route_backward
  RowMove moves = RowMove::none;  // of permute and unpermute
  bool fused = false;             // ... by one kernel, whose traffic is no more than its operands
  std::int64_t senders = 1;       // of by_expert and by_rank: ranks whose rows an expert has
  bool drops =
      false;  // of dispatch: tokens without a slot are left out; otherwise that is an error
  /// Of an all-to-all, and of what makes its rows: it is sent while the other direction of another
  /// micro-batch is computed.
  bool next_to_other = false;
  /// Of products and a loss that go through their rows in so many pieces, one after another, all
  /// of them for a piece before any of them for the next.
  std::int64_t pieces = 1;
  FileUse files = FileUse::none;  // of a copy; none: between the GPU and its host
  std::int64_t vocabulary = 0;    // of a loss: its columns of all shards, without padding
  Flops flops{};                  // multiply-adds count two; causal attention counts half
  Bytes bytes{};                  // memory traffic, or payload of a collective (nccl-tests size)
};

}  // namespace orrery::models
