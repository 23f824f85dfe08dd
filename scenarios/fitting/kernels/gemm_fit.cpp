// Fits GEMM tables: a smooth roofline, the quantisation pass if rows include it, and a residual.

#include <cmath>

#include "hardware/dtype.hpp"
#include "hardware/fitting/gemm_fit.hpp"
#include "scenarios/fitting/kernels/kernel_fit.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// Bytes per operand element (the result has two bytes); fp4 has a scale of one byte per 16
/// elements.
double gemm_element_bytes(const std::string& dtype) {
  if (dtype == "fp4") return 0.5 + 1.0 / 16;
  if (dtype == "fp8") return 1;
  return dtype == "fp32" || dtype == "tf32" ? 4 : 2;
}

hardware::GemmPoint gemm_point(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const std::string dtype = catalogue_dtype(row.dtype);
  const auto type = hardware::dtype_named(dtype);
  ensure(type && sample.gpu->peak(*type), "a GEMM sample's GPU computes in its format");
  const double m = static_cast<double>(row.m);
  const double n = static_cast<double>(row.n);
  const double k = static_cast<double>(row.k);
  const double bandwidth = sample.gpu->memory_bandwidth.count();
  // If a row's time includes the quantisation of activations: 2 bytes read and 1 written per
  // element.
  return {.shape = {row.m, row.n, row.k},
          .compute = 2 * m * n * k / sample.gpu->peak(*type)->count(),
          .moving = (gemm_element_bytes(dtype) * (m * k + k * n) + 2 * m * n) / bandwidth,
          .quantising = !includes(row, Included::quantisation) ? 0 : 3 * m * k / bandwidth,
          .log_seconds = row.seconds ? std::log(*row.seconds) : 0};
}

}  // namespace

std::optional<KernelFit> fit_gemm(const std::vector<KernelSample>& samples, Residual residual) {
  std::vector<hardware::GemmPoint> points;
  bool quantises = false;
  for (const KernelSample& sample : samples) {
    points.push_back(gemm_point(sample));
    quantises = quantises || points.back().quantising > 0;
  }
  hardware::GemmSearch search{.scale = log_scale};
  if (quantises) {
    search.quantise = {0.4, 0.03, 1.2};
    if (residual == Residual::nearest) search.prologue = {50, 0, 1000};
  }
  if (points.size() < search.unknowns()) return std::nullopt;
  const hardware::GemmFormula found = hardware::fit_gemm(points, search);
  if (residual == Residual::none) points.clear();
  const hardware::ShapeResidual nearest{residuals_of(found, points)};
  KernelFit fit{.seconds =
                    [=](const KernelSample& sample) {
                      const double smooth = found.seconds(gemm_point(sample));
                      if (nearest.samples().empty()) return smooth;
                      const MeasuredKernel& row = *sample.row;
                      return smooth * std::exp(nearest.log_ratio({row.m, row.n, row.k}));
                    },
                .parameters = {{"compute_share", found.compute},
                               {"memory_share", found.memory},
                               {"overhead_s", found.overhead},
                               {"corner", found.corner}},
                .residual = nearest};
  if (quantises) {
    fit.parameters.emplace_back("quantise_share", found.quantise);
    fit.parameters.emplace_back("prologue_depth", found.prologue);
  }
  return fit;
}

}  // namespace orrery::scenarios
