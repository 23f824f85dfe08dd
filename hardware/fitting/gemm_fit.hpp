#pragma once
// Fits the GEMM curve of hardware/curves/curve.hpp to measured shapes, and computes its residuals
// by shape.

#include <optional>
#include <vector>

#include "hardware/curves/curve.hpp"
#include "hardware/curves/shape_residual.hpp"
#include "hardware/fitting/minimise.hpp"

namespace orrery::hardware {

/// One measured GEMM, in seconds: the ideal time of each part, and the measured time of all.
struct GemmPoint {
  GemmSize shape;
  double compute = 0, moving = 0;  // FLOPs at peak; bytes at memory bandwidth
  double quantising = 0;           // of the operands, at memory bandwidth; 0: not timed
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
  /// The catalogue's curve, which leaves out the quantise and prologue terms.
  GemmCurve curve() const;
};

/// Start values and bounds of the fit. The defaults are what data-centre GPUs reach.
struct GemmSearch {
  Unknown overhead{5e-6, 0.3e-6, 50e-6};  // seconds; searched in its logarithm
  Unknown compute{0.7, 0.05, 1.0}, memory{0.8, 0.05, 1.2};
  Unknown corner{3, 1.2, 10};  // searched in log(corner - 1)
  Unknown quantise{1, 1, 1};   // fixed: quantising is not timed
  Unknown prologue{0, 0, 0};   // fixed: the catalogue's formula
  double scale = 0.03;         // of soft_l1, in log time

  std::size_t unknowns() const;
};

GemmFormula fit_gemm(const std::vector<GemmPoint>& points, const GemmSearch& search);
/// Sum of soft_l1 of the log errors.
double cost_of(const GemmFormula& formula, const std::vector<GemmPoint>& points, double scale);
/// The formula's log residual at each point.
std::vector<ShapeResidual::ResidualSample> residuals_of(const GemmFormula& formula,
                                                        const std::vector<GemmPoint>& points);

}  // namespace orrery::hardware
