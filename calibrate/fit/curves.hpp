#pragma once
// Fits the curves of hardware/ to measured points: robust fits of relative error, each with its
// cross-validation error.

#include <optional>
#include <vector>

#include "hardware/curves/calibration.hpp"
#include "hardware/curves/curve.hpp"

namespace orrery::calibrate {

/// One measured GEMM. Work, traffic and time are those of one GEMM, also in a batch.
struct ProductPoint {
  hardware::GemmSize shape;
  Flops work{};
  Bytes traffic{};
  Time time{};
};

/// Peak rates of which the fitted parameters are shares.
struct Roof {
  FlopRate peak{};
  Bandwidth memory{};
  double most_share = 1;  // upper bound of either share; 1 at most in a GPU file
};

/// Fit of GEMMs: overhead and shares at a corner of 4 (hardware/fitting/gemm_fit.hpp), and the
/// residuals by shape. `leave_out_error_pct`: median absolute error of cross-validation, every
/// fifth point in turn predicted by the other four fifths, residuals included.
struct GemmCalibration {
  hardware::GemmCurve curve;
  std::vector<hardware::ShapeResidual::ResidualSample> residuals;
  std::optional<double> leave_out_error_pct;
  double plain_error_pct = 0;  // without residuals, of the fit itself
};

/// Errors  no point: ContractError
GemmCalibration fit_gemms(const std::vector<ProductPoint>& points, const Roof& roof);

/// One measured time of a kind of kernel, at some memory traffic.
struct KernelPoint {
  Bytes traffic{};
  Time time{};
};

/// The table of medians, or overhead and rate: whichever predicts left-out sizes better.
struct TrafficFit {
  hardware::KernelCurve curve;
  std::optional<double> leave_out_error_pct;
  std::size_t sizes = 0;
};

/// Points of nearly the same traffic (within 2 %) count as one size with their median time.
/// Errors  no point: ContractError
TrafficFit fit_kernel(const std::vector<KernelPoint>& points);

/// Median absolute error, in per cent, of interpolating each inner point of a table from the
/// others; nothing for a table of two points or fewer.
std::optional<double> interpolation_error_pct(const hardware::SizeTable& table);

}  // namespace orrery::calibrate
