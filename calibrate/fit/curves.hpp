#pragma once
// From measured points to the curves of hardware/: robust fits in relative error, each with its
// error on points that the fit had not seen.

#include <optional>
#include <string>
#include <vector>

#include "hardware/calibration.hpp"
#include "hardware/curve.hpp"

namespace orrery::calibrate {

/// One product, measured. Work and traffic are of one product; `time` too.
struct ProductPoint {
  hardware::GemmSize shape;
  Flops work{};
  Bytes traffic{};
  Time time{};
};

/// What products are set against: rates that make shares of the fitted parameters.
struct Roof {
  FlopRate peak{};
  Bandwidth memory{};
  double most_share = 1;  // of either; a GPU file's shares end at 1
};

/// GEMM: overhead and shares at a corner of 4 (hardware/fitting/gemm_fit.hpp), and what they miss
/// by shape. `leave_out_error_pct`: median absolute error, every fifth point in turn predicted by
/// the other four fifths, residuals included.
struct ProductFit {
  hardware::GemmCurve curve;
  std::vector<hardware::ShapeResidual::ResidualSample> residuals;
  std::optional<double> leave_out_error_pct;
  double plain_error_pct = 0;  // without residuals, of the fit itself
};

/// Errors  no point: ContractError
ProductFit fit_products(const std::vector<ProductPoint>& points, const Roof& roof);

/// A kind of kernel at some traffic.
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

/// Points of nearly the same traffic (within 2 %) are one size, their median time.
/// Errors  no point: ContractError
TrafficFit fit_kernel(const std::vector<KernelPoint>& points);

/// Median absolute error, in per cent, of interpolating each inner point of a table from the
/// others; of a table of two points or fewer, nothing can be said.
std::optional<double> interpolation_error_pct(const hardware::SizeTable& table);

}  // namespace orrery::calibrate
