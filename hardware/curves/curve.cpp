#include "hardware/curves/curve.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

/// (x^q + y^q)^(1/q) without overflow: the larger one, raised a little near the corner.
double smooth_maximum(double x, double y, double q) {
  const double larger = std::max(x, y);
  if (larger <= 0) return 0;
  return larger * std::pow(1 + std::pow(std::min(x, y) / larger, q), 1 / q);
}

}  // namespace

bool GemmRange::covers(const GemmSize& shape) const {
  return lowest.m <= shape.m && shape.m <= highest.m && lowest.n <= shape.n &&
         shape.n <= highest.n && lowest.k <= shape.k && shape.k <= highest.k;
}

Time time_of(const GemmCurve& curve, FlopRate peak, Bandwidth memory, Flops work, Bytes traffic) {
  ensure(peak.count() > 0 && memory.count() > 0, "a GEMM needs a peak and a memory bandwidth");
  ensure(work.count() >= 0 && traffic.count() >= 0, "a GEMM has no negative work");
  const double compute = static_cast<double>(work.count()) / (curve.compute_share * peak.count());
  const double moving =
      static_cast<double>(traffic.count()) / (curve.memory_share * memory.count());
  return curve.overhead + from_seconds(smooth_maximum(compute, moving, curve.corner));
}

Time time_of(const MemoryCurve& curve, Bandwidth memory, Bytes traffic) {
  ensure(memory.count() > 0, "a memory-bound kernel needs a memory bandwidth");
  ensure(traffic.count() >= 0, "a kernel moves no negative bytes");
  return curve.overhead +
         from_seconds(static_cast<double>(traffic.count()) / (curve.memory_share * memory.count()));
}

double AttentionCall::ratio(const AttentionCurve& curve) const {
  if (pass == Pass::forward) return 1;
  return grouped ? curve.grouped_backward_ratio.value_or(curve.backward_ratio)
                 : curve.backward_ratio;
}

double share_of_peak(const AttentionCurve& curve, const AttentionCall& call) {
  ensure(call.seq >= 1 && call.head_dim >= 1, "attention needs a sequence and a head");
  const double between = std::clamp((call.head_dim - 64) / 64.0, 0.0, 1.0);
  const double endless = curve.share_64 + between * (curve.share_128 - curve.share_64);
  const double half_length = curve.half_length * (call.causal ? 1 + curve.causal_penalty : 1.0);
  const double forward = endless / (1 + half_length / static_cast<double>(call.seq));
  return forward * call.ratio(curve);
}

Time time_of(const AttentionCurve& curve, FlopRate peak, const AttentionCall& call) {
  ensure(peak.count() > 0, "attention needs a peak");
  ensure(call.work.count() >= 0, "attention has no negative work");
  const double share = share_of_peak(curve, call);
  return from_seconds(static_cast<double>(call.work.count()) / (share * peak.count()));
}

}  // namespace orrery::hardware
