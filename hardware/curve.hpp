#pragma once
// Curves that turn a kernel's shape into a time, each with its source. Plain first forms.

#include <string>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Where a curve comes from. `borrowed` names the GPU or dtype whose shares of peak were used.
struct CurveOrigin {
  std::string source;
  std::string borrowed;  // empty: measured on this very GPU and dtype
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
};

/// A kernel limited by memory: t = overhead + bytes / (memory_share * memory bandwidth).
struct MemoryCurve {
  double memory_share = 1;
  Time overhead{};
  CurveOrigin origin;
};

/// Fused attention, useful FLOPs only (causal counts half).
///   share(s) = share_at_infinity / (1 + half_length * (1 + causal * causal_penalty) / s)
struct AttentionCurve {
  double share_64 = 0.5;   // of dense peak, head size <= 64
  double share_128 = 0.6;  // head size 128 and above
  double half_length = 0;  // tokens
  double causal_penalty = 0;
  double backward_ratio = 1.0;  // backward's share of peak over forward's
  CurveOrigin origin;
};

}  // namespace orrery::hardware
