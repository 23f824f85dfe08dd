#pragma once
// Curves that turn a kernel's size into a time, each with its source. First-order forms: one smooth
// roofline per number format, no tiles or waves, no dependence on layout; the time is that of a
// kernel alone on a GPU at boost clocks.

#include <cstdint>
#include <optional>
#include <string>

#include "hardware/curves/shape_residual.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Where a curve comes from. `fallback_from` names the GPU or dtype whose shares of peak were used.
struct CurveOrigin {
  std::string source;
  std::string fallback_from;  // empty: measured on this very GPU and dtype
  bool of_this_gpu = false;   // fallback_from is another dtype of the same GPU: "its bf16"
  bool scaled = false;        // to the share of peak that this GPU sustains
  double spread = 0;          // standard deviation of ln(time) of a share that was not measured
};

/// Shapes that a GEMM curve was fitted to, and its cross-validation errors (rows held out in turn).
struct GemmRange {
  int rows = 0;
  GemmSize lowest, highest;
  double median_error_pct = 0, p90_error_pct = 0;
  std::string includes;  // what the rows time besides the GEMM; not in the curve

  bool covers(const GemmSize& shape) const;
};

/// Sequence lengths that an attention curve was fitted to, and its cross-validation errors (rows
/// held out in turn).
struct SequenceRange {
  int rows = 0;
  std::int64_t shortest = 0, longest = 0;  // tokens
  double median_error_pct = 0, p90_error_pct = 0;
};

/// One dense matrix product [m, k] x [k, n].
///   t = overhead + (x^q + y^q)^(1/q),  x = 2mnk / (compute_share * peak),
///                                      y = bytes / (memory_share * memory bandwidth)
/// corner q -> infinity is the plain roofline max(x, y).
struct GemmCurve {
  double compute_share = 1;
  double memory_share = 1;
  Time overhead{};
  double corner = 4;
  CurveOrigin origin;
  std::optional<GemmRange> measured{};  // nothing: not known
};

/// A kernel limited by memory: t = overhead + bytes / (memory_share * memory bandwidth).
struct MemoryCurve {
  double memory_share = 1;
  Time overhead{};
  CurveOrigin origin;
};

/// Fused attention, useful FLOPs only (causal counts half).
///   share(s) = share_at_infinity / (1 + half_length * (1 + causal * causal_penalty) / s)
/// The backward pass reaches `backward_ratio` of that share, of heads that share keys
/// `grouped_backward_ratio`; the caller counts its FLOPs (2.5 times the forward's).
struct AttentionCurve {
  double share_64 = 0.5;   // of dense peak, head size <= 64
  double share_128 = 0.6;  // head size 128 and above
  double half_length = 0;  // tokens
  double causal_penalty = 0;
  double backward_ratio = 1.0;  // backward's share of peak over forward's
  /// The same where several heads of queries share one of keys and values; as backward_ratio where
  /// not stated. Kernels may have no fast path for the sums over such heads.
  std::optional<double> grouped_backward_ratio{};
  CurveOrigin origin;
  std::optional<SequenceRange> measured{};  // nothing: not known
};

enum class Pass : std::uint8_t { forward, backward };

/// One call of fused attention. Head sizes between 64 and 128 are interpolated linearly.
struct AttentionCall {
  Flops work{};  // useful FLOPs of this pass
  std::int64_t seq = 1;
  int head_dim = 128;
  bool causal = true;
  bool grouped = false;  // fewer heads of keys and values than of queries
  Pass pass = Pass::forward;

  /// Share of the forward pass's share that this call reaches.
  double ratio(const AttentionCurve& curve) const;
};

/// Share of dense peak that a call reaches, in (0, 1].
/// Errors  seq < 1 or head_dim < 1: ContractError
double share_of_peak(const AttentionCurve& curve, const AttentionCall& call);

/// The formulas above. Errors  negative work or bytes, peak or bandwidth <= 0: ContractError
Time time_of(const GemmCurve& curve, FlopRate peak, Bandwidth memory, Flops work, Bytes traffic);
Time time_of(const MemoryCurve& curve, Bandwidth memory, Bytes traffic);
Time time_of(const AttentionCurve& curve, FlopRate peak, const AttentionCall& call);

}  // namespace orrery::hardware
