#pragma once
// How much wider a step's interval is because curves behind it were asked beyond the sizes that
// they were measured on. Leaves out curves whose range is not known, grouped and batched GEMMs, and
// memory-bound kernels.

#include "models/prediction/prediction.hpp"
#include "models/program/counts.hpp"

namespace orrery::models {

/// Standard deviation of ln(time / predicted) of a kernel or collective, per factor e beyond the
/// measured range.
/// Source  `orrery fit curves --leave-out range --from FILE`: each curve fitted to its smaller or
/// its
///         larger sizes, and asked for the others; FILE is hardware/measured/kernels.csv for GEMMs
///         and attention, hardware/measured/collectives.csv for collectives
struct ErrorBeyond {
  static constexpr double gemm = 0.10, attention = 0.16, collective = 0.08;
};

/// Standard deviation of ln(step) that curves add which were asked beyond their range:
///   s = sqrt(sum over curves of (c sum over calls of ln(f) t / step)^2)
/// c  ErrorBeyond of the curve's kind;  f  how far beyond the call is;  t  its time on the slowest
/// rank. Calls of one curve err together, curves do not.
double spread_beyond_range(const Question& question, const Prediction& prediction);
/// counts  of the slowest rank
double spread_beyond_range(const Question& question, const Prediction& prediction,
                           const TargetCounts& counts);

}  // namespace orrery::models
