#pragma once
// Matrix products: from measured shapes to the curve of hardware/curve.hpp, and what that curve
// misses by shape.

#include <optional>
#include <vector>

#include "hardware/curve.hpp"
#include "hardware/fitting/minimise.hpp"
#include "hardware/shape_residual.hpp"

namespace orrery::hardware {

/// One measured product, in seconds: its parts at peak, and all of it.
struct GemmPoint {
  GemmSize shape;
  double compute = 0, moving = 0;  // at the peak and at the memory's bandwidth
  double quantising = 0;           // its operands, at the memory's bandwidth; 0: not in the time
  double log_seconds = 0;
};

/// t = overhead + (x^q + y^q)^(1/q) [+ quantising / c]
///   x = compute (1 + K / k) / e,  y = moving / b
/// e, b, c shares of the peak and of the memory bandwidth; q the corner; K the depth at which
///         starting the inner loop costs as much as running it
/// Source  form: roofline (Williams et al. 2009) with a smooth corner
struct GemmFormula {
  double overhead = 0, compute = 1, memory = 1, corner = 4, quantise = 1, prologue = 0;

  double seconds(const GemmPoint& point) const;
  /// Without what the catalogue's curve does not hold.
  GemmCurve curve() const;
};

/// Bounds and starts. By default what data-centre GPUs reach.
struct GemmSearch {
  Unknown overhead{5e-6, 0.3e-6, 50e-6};  // seconds, sought by its logarithm
  Unknown compute{0.7, 0.05, 1.0}, memory{0.8, 0.05, 1.2};
  Unknown corner{3, 1.2, 10};  // sought by the logarithm of what it exceeds 1 by
  Unknown quantise{1, 1, 1};   // fixed: no point quantises
  Unknown prologue{0, 0, 0};   // fixed: the catalogue's formula
  double scale = 0.03;         // of soft_l1, in log time

  std::size_t unknowns() const;
};

GemmFormula fit_gemm(const std::vector<GemmPoint>& points, const GemmSearch& search);
/// Sum of soft_l1 of the log errors.
double cost_of(const GemmFormula& formula, const std::vector<GemmPoint>& points, double scale);
/// What the formula misses at each point.
std::vector<ShapeResidual::ResidualSample> residuals_of(const GemmFormula& formula,
                                                        const std::vector<GemmPoint>& points);

}  // namespace orrery::hardware
