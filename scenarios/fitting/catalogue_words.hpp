#pragma once
// A fitted curve in the format of a GPU's catalogue file: its entry under /gemm or /attention, with
// the range that it was fitted to and its error on rows left out of the fit.

#include "scenarios/fitting/kernels/curve_report.hpp"
#include "scenarios/fitting/kernels/kernel_curves.hpp"

namespace orrery::scenarios {

/// `{gpu, at, value}`: the GPU's file, the JSON pointer in it and the value to write there; empty
/// for curves that the catalogue does not hold. `card` has the curve's range, parameters and
/// errors.
/// Attention measured forward and backward together is split assuming that backward has 2.5 times
/// the FLOPs of forward at 0.92 of its share of peak.
/// Source  that ratio: FlashAttention-2 on H100, where both are published
///         (Dao-AILab/flash-attention assets)
Json catalogue_words(const KernelCurves::Curve& curve, const CurveCard& card);

}  // namespace orrery::scenarios
