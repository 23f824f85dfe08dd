#pragma once
// A fitted curve in the words of a GPU's file: what stands there under /gemm or /attention, with
// the range that it was fitted to and its error on what it had not seen.

#include "scenarios/fitting/curve_report.hpp"
#include "scenarios/fitting/kernel_curves.hpp"

namespace orrery::scenarios {

/// `{gpu, at, value}`: the GPU's file, the pointer in it and what to write there; empty for curves
/// that the catalogue does not hold. `card` has its range, parameters and errors.
/// Attention measured forward and backward together is split with backward 2.5 times the FLOPs of
/// forward at 0.92 of its share.
/// Source  that ratio: FlashAttention-2 on H100, where both are published
///         (Dao-AILab/flash-attention assets)
Json catalogue_words(const KernelCurves::Curve& curve, const CurveCard& card);

}  // namespace orrery::scenarios
