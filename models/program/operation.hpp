#pragma once
// Operations: one kernel, collective or copy each, with every attribute that an executor or a cost
// model needs. How long an operation takes is left out.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/model/kinds.hpp"
#include "models/program/attention_shape.hpp"
#include "models/program/ids.hpp"
#include "models/program/op_kind.hpp"
#include "models/program/operand.hpp"
#include "sim/errors.hpp"

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
  bool gated = false;  // after each query head come `dim` columns of its output's gate

  /// Where the columns of a head begin, those of queries first.
  std::int64_t column(std::int64_t head) const {
    return (head + (gated ? std::min(head, queries) : 0)) * dim;
  }
};

/// What an activation multiplies by a gate's sigmoid: a head's output by as many columns next to
/// its queries, or a token's row by one number.
enum class GatedColumns : std::uint8_t { none, heads, rows };

/// How the rows of an all-to-all of experts travel, and those of the operations that make them.
struct TokenExchange {
  TokenCopies deduplicated;  // a token is sent once to each node
  /// It overlaps with the opposite pass, backward or forward, of another micro-batch.
  bool overlaps_micro_batch = false;
};

/// An operand in a layout other than its own Operand::sharding.
struct OperandUse {
  OperandId operand = 0;
  Sharding sharding;
};

/// The part of a step that an operation belongs to; its launch costs the host differently in each.
enum class Pass : std::uint8_t { forward, backward, recompute, step };

/// What a scan computes.
enum class ScanRule : std::uint8_t { mamba2, delta, kimi };

/// Whether a copy continues between host memory and files on its node's storage, and which way.
enum class FileUse : std::uint8_t { none, read, write };

/// Which module of a layer an operation belongs to; recomputation names modules.
struct OperationModule {
  bool attention_core = false;
  bool mlp = false;
  bool moe = false;
  bool latent_up = false;  // mla_up_proj: latents to heads
  bool adapter = false;    // a LoRA adapter, and collectives for its operands
  /// Adapters that stand for this one where a stack keeps the parts of a fused matrix (query, key
  /// and value; gate and up) apart, each with an adapter of its own.
  std::int8_t adapters = 1;
  /// Kernels that it is launched as, one after another: of experts or tiles one by one.
  std::int16_t kernels = 1;
};

// What an operation has besides what all have, by what it computes. A kind of operation with
// attributes of its own adds a struct, its place in OperationWork and its accessors.

/// Of gemm, batched_gemm and grouped_gemm.
struct ProductWork {
  GemmShape gemm{};
  /// Of a grouped_gemm: rows of each expert. Without transpose_a they are rows of reads[0] and of
  /// writes[0], reads[1] holds one weight matrix per expert, and they add up to m. With transpose_a
  /// they are rows of both reads, writes[0] holds one matrix per expert, and they add up to k.
  std::vector<std::int64_t> group_rows;
  AttentionGemm attention_gemm = AttentionGemm::none;  // of a batched_gemm
  AttentionShape attention{};                          // ... whose heads it multiplies
  /// Of the GEMMs of a fused cross-entropy: LossWork::pieces.
  std::int64_t pieces = 1;
};

/// Of attention and softmax, and of an add that merges attention to several ranks' keys.
struct AttentionWork {
  AttentionShape attention{};
  SequencePart sequence{};
};

/// Of a collective.
struct CollectiveWork {
  Collective collective = Collective::all_reduce;
  std::uint16_t communicator = 0;  // index into Program::communicators
  SequencePart sequence{};         // of a send_receive: `ahead`
  TokenExchange exchange;          // of an all-to-all of experts
};

/// Of permute and unpermute.
struct RowWork {
  RowMove moves = RowMove::none;
  bool fused = false;             // in one kernel, which reads and writes only its operands
  std::int64_t source_ranks = 1;  // of by_expert and by_rank: ranks that send rows to an expert
  bool drops = false;  // of dispatch: tokens without a slot are left out; otherwise an error
  TokenExchange exchange;
};

/// Of norms.
struct NormWork {
  Norm norm = Norm::layer_norm;
  double epsilon = 0;
  double offset = 0;  // added to the weight
  HeadColumns heads;  // of a norm over each head
};

/// Of embedding and embedding_backward.
struct EmbeddingWork {
  double multiplier = 1;  // of the rows that are looked up
};

/// Of rotary positions.
struct RotaryWork {
  HeadColumns heads;
  /// Radians per position of each pair (i, i + pairs) of a head's columns; the columns after them
  /// are not rotated.
  std::vector<double> frequencies;
  double magnitude = 1;  // factor on cosines and sines
};

/// Of activation and activation_backward.
struct ActivationWork {
  Activation activation = Activation::gelu;
  /// Of a gated MLP: gates and values are clamped at this limit, as GPT-OSS does; 0: they are not.
  double clamp = 0;
  GatedColumns gates = GatedColumns::none;
  HeadColumns heads;  // of GatedColumns::heads
};

/// Of an add, and of a cast of some columns.
struct AddWork {
  bool by_position = false;  // reads[1] is a table with a row for each position
  bool gated = false;        // reads[2] is the logit of each row's gate of reads[1]
  /// Of an add: the column of reads[0] and writes[0] from which on the narrower reads[1] is added;
  /// other columns of writes[0], which is reads[0], stay. Of a cast: the column of reads[0] from
  /// which on the narrower writes[0] is copied.
  std::optional<std::int64_t> first_column{};
};

/// Of route and route_backward.
struct RouteWork {
  Routing routing;
};

/// Of cross_entropy and its backward.
struct LossWork {
  std::int64_t vocabulary = 0;  // over all shards, without padding
  /// Of a fused cross-entropy: the number of pieces that the rows of its GEMMs and of the loss are
  /// cut into. All of these operations process one piece before any processes the next.
  std::int64_t pieces = 1;
};

/// Of scan and scan_backward.
struct ScanWork {
  ScanRule rule = ScanRule::mamba2;
  std::int64_t chunks = 0;  // of the longest sequence, one after the other
  std::int64_t chunk = 0;   // tokens of one
  std::int64_t taps = 0;    // of the convolution
  /// Heads on this rank and the width of their values; groups of Mamba-2 or key heads of the delta
  /// rule, and the width of what leads into the state.
  std::int64_t heads = 0, value_dim = 0, groups = 0, state = 0;
  double epsilon = 0;     // of the gated norm
  double least_step = 0;  // of Mamba-2: steps are at least as long
  Bytes convolved{};      // traffic of its convolution along the sequence, a kernel of its own
};

/// Of a convolution: the GEMM that it is, of which each of `batch` groups of channels has one.
struct ConvolutionWork {
  GemmShape gemm{};
  bool depthwise = false;  // a group is one channel
};

/// Of a kernel by name.
struct KernelWork {
  std::string key;        // "fft"
  bool gathers = false;   // reads scattered rows
  std::int64_t rows = 0;  // that it works on one by one (top_k); 0: not counted
};

/// Of host_work.
struct HostWork {
  Time time{};
};

/// Of a copy.
struct CopyWork {
  FileUse files = FileUse::none;  // none: between the GPU and its host
};

using OperationWork =
    std::variant<std::monostate, ProductWork, AttentionWork, CollectiveWork, RowWork, NormWork,
                 RotaryWork, ActivationWork, AddWork, RouteWork, LossWork, ScanWork, CopyWork,
                 ConvolutionWork, KernelWork, HostWork, EmbeddingWork>;

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
  /// Operands that it reads or writes in a layout other than their own; resharding
  /// (models/lowering/reshard.hpp) inserts the collectives between the two layouts and empties both
  /// lists. An operand that is needed but not read is gathered ahead, for a later operation.
  std::vector<OperandUse> needs, makes;
  OperationModule module;
  bool host_waits = false;  // the host waits until it has ended
  /// Tokens of one of the sequences that it works on, where that is not the step's: an encoder's.
  std::int64_t seq_len = 0;
  OperationWork work;
  Flops flops{};  // multiply-adds count two; causal attention counts half
  Bytes bytes{};  // memory traffic, or payload of a collective (nccl-tests size)

  // Attributes of its work. Those of another work are defaults to a reader; whoever takes a mutable
  // one begins the work that has it.
  // Errors  to write an attribute of another work than the one begun: ContractError
  const auto& gemm() const { return part<ProductWork>().gemm; }
  auto& mutable_gemm() { return part<ProductWork>().gemm; }
  const auto& group_rows() const { return part<ProductWork>().group_rows; }
  auto& mutable_group_rows() { return part<ProductWork>().group_rows; }
  const auto& attention_gemm() const { return part<ProductWork>().attention_gemm; }
  auto& mutable_attention_gemm() { return part<ProductWork>().attention_gemm; }
  const auto& collective() const { return part<CollectiveWork>().collective; }
  auto& mutable_collective() { return part<CollectiveWork>().collective; }
  const auto& communicator() const { return part<CollectiveWork>().communicator; }
  auto& mutable_communicator() { return part<CollectiveWork>().communicator; }
  const auto& moves() const { return part<RowWork>().moves; }
  auto& mutable_moves() { return part<RowWork>().moves; }
  const auto& fused() const { return part<RowWork>().fused; }
  auto& mutable_fused() { return part<RowWork>().fused; }
  const auto& source_ranks() const { return part<RowWork>().source_ranks; }
  auto& mutable_source_ranks() { return part<RowWork>().source_ranks; }
  const auto& drops() const { return part<RowWork>().drops; }
  auto& mutable_drops() { return part<RowWork>().drops; }
  const auto& norm() const { return part<NormWork>().norm; }
  auto& mutable_norm() { return part<NormWork>().norm; }
  const auto& epsilon() const { return part<NormWork>().epsilon; }
  auto& mutable_epsilon() { return part<NormWork>().epsilon; }
  const auto& offset() const { return part<NormWork>().offset; }
  auto& mutable_offset() { return part<NormWork>().offset; }
  const auto& multiplier() const { return part<EmbeddingWork>().multiplier; }
  auto& mutable_multiplier() { return part<EmbeddingWork>().multiplier; }
  const auto& frequencies() const { return part<RotaryWork>().frequencies; }
  auto& mutable_frequencies() { return part<RotaryWork>().frequencies; }
  const auto& magnitude() const { return part<RotaryWork>().magnitude; }
  auto& mutable_magnitude() { return part<RotaryWork>().magnitude; }
  const auto& activation() const { return part<ActivationWork>().activation; }
  auto& mutable_activation() { return part<ActivationWork>().activation; }
  const auto& clamp() const { return part<ActivationWork>().clamp; }
  auto& mutable_clamp() { return part<ActivationWork>().clamp; }
  const auto& gates() const { return part<ActivationWork>().gates; }
  auto& mutable_gates() { return part<ActivationWork>().gates; }
  const auto& gates_row() const { return part<AddWork>().gated; }
  auto& mutable_gates_row() { return part<AddWork>().gated; }
  const auto& by_position() const { return part<AddWork>().by_position; }
  auto& mutable_by_position() { return part<AddWork>().by_position; }
  const auto& first_column() const { return part<AddWork>().first_column; }
  auto& mutable_first_column() { return part<AddWork>().first_column; }
  const auto& routing() const { return part<RouteWork>().routing; }
  auto& mutable_routing() { return part<RouteWork>().routing; }
  const auto& vocabulary() const { return part<LossWork>().vocabulary; }
  auto& mutable_vocabulary() { return part<LossWork>().vocabulary; }
  const auto& scan() const { return part<ScanWork>(); }
  auto& mutable_scan() { return part<ScanWork>(); }
  const auto& convolution() const { return part<ConvolutionWork>(); }
  auto& mutable_convolution() { return part<ConvolutionWork>(); }
  const auto& named() const { return part<KernelWork>(); }
  auto& mutable_named() { return part<KernelWork>(); }
  const auto& host_time() const { return part<HostWork>().time; }
  auto& mutable_host_time() { return part<HostWork>().time; }
  const auto& files() const { return part<CopyWork>().files; }
  auto& mutable_files() { return part<CopyWork>().files; }

  // Attributes of several works.
  const auto& attention() const {
    return is<ProductWork>() ? part<ProductWork>().attention : part<AttentionWork>().attention;
  }
  auto& mutable_attention() {
    return is<ProductWork>() ? part<ProductWork>().attention : part<AttentionWork>().attention;
  }
  const auto& sequence() const {
    return is<CollectiveWork>() ? part<CollectiveWork>().sequence : part<AttentionWork>().sequence;
  }
  auto& mutable_sequence() {
    return is<CollectiveWork>() ? part<CollectiveWork>().sequence : part<AttentionWork>().sequence;
  }
  const auto& exchange() const {
    return is<RowWork>() ? part<RowWork>().exchange : part<CollectiveWork>().exchange;
  }
  auto& mutable_exchange() {
    return is<RowWork>() ? part<RowWork>().exchange : part<CollectiveWork>().exchange;
  }
  const auto& heads() const {
    if (is<ActivationWork>()) return part<ActivationWork>().heads;
    return is<NormWork>() ? part<NormWork>().heads : part<RotaryWork>().heads;
  }
  auto& mutable_heads() {
    if (is<ActivationWork>()) return part<ActivationWork>().heads;
    const bool norms = kind == OpKind::norm || kind == OpKind::norm_backward;
    return norms ? part<NormWork>().heads : part<RotaryWork>().heads;
  }
  const auto& pieces() const {
    return is<ProductWork>() ? part<ProductWork>().pieces : part<LossWork>().pieces;
  }
  auto& mutable_pieces() {
    return is<ProductWork>() ? part<ProductWork>().pieces : part<LossWork>().pieces;
  }

  template <class Work>
  bool is() const {
    return std::holds_alternative<Work>(work);
  }

 private:
  template <class Work>
  const Work& part() const {
    static const Work none;
    const Work* own = std::get_if<Work>(&work);
    return own ? *own : none;
  }
  template <class Work>
  Work& part() {
    if (is<std::monostate>()) return work.emplace<Work>();
    Work* own = std::get_if<Work>(&work);
    ensure(own != nullptr, "an operation has the attributes of one kind of work");
    return *own;
  }
};

}  // namespace orrery::models
