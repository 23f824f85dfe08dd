// GEMM tables: a smooth roofline, the pass that quantises where rows include it, and a residual.

#include <algorithm>
#include <cmath>

#include "hardware/dtype.hpp"
#include "scenarios/fitting/kernel_fit.hpp"
#include "scenarios/fitting/least_squares.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// Operands in the table's format, the result in two bytes; fp4 has a scale of one byte per 16.
double gemm_element_bytes(const std::string& dtype) {
  if (dtype == "fp4") return 0.5 + 1.0 / 16;
  if (dtype == "fp8") return 1;
  return dtype == "fp32" || dtype == "tf32" ? 4 : 2;
}

/// What the formula needs of a row, in SI units: time at peak of its parts.
struct GemmPoint {
  double compute = 0, moving = 0, quantising = 0, inner = 0, log_seconds = 0;
};

GemmPoint gemm_point(const KernelSample& sample) {
  const MeasuredKernel& row = *sample.row;
  const std::string dtype = catalogue_dtype(row.dtype);
  const auto type = hardware::dtype_named(dtype);
  ensure(type && sample.gpu->peak(*type), "a GEMM sample's GPU computes in its format");
  const double m = static_cast<double>(row.m);
  const double n = static_cast<double>(row.n);
  const double k = static_cast<double>(row.k);
  const double bandwidth = sample.gpu->memory_bandwidth.count();
  GemmPoint point;
  point.compute = 2 * m * n * k / sample.gpu->peak(*type)->count();
  point.moving = (gemm_element_bytes(dtype) * (m * k + k * n) + 2 * m * n) / bandwidth;
  point.quantising = row.includes.empty() ? 0 : 3 * m * k / bandwidth;
  point.inner = k;
  point.log_seconds = row.seconds ? std::log(*row.seconds) : 0;
  return point;
}

/// t = overhead + (x^q + y^q)^(1/q) [+ 3 m k / (c W)]
///   x = 2mnk (1 + K / k) / (e P),  y = bytes / (b W)
/// e, b, c shares of the peak P and of the memory bandwidth W; q the corner; K the depth at which
///         starting the inner loop costs as much as running it
/// Brackets: rows whose time includes the quantisation of activations (2 bytes read, 1 written).
/// Source  form: roofline (Williams et al. 2009) with a smooth corner
struct GemmParameters {
  double overhead = 0, compute = 1, memory = 1, corner = 4, quantise = 1, prologue = 0;

  double seconds(const GemmPoint& point) const {
    const double x = point.compute * (1 + prologue / point.inner) / compute;
    const double y = point.moving / memory;
    const double larger = std::max(x, y);
    const double ratio = std::min(x, y) / larger;
    return overhead + larger * std::pow(1 + std::pow(ratio, corner), 1 / corner) +
           point.quantising / quantise;
  }
};

GemmParameters gemm_parameters(const std::vector<double>& p) {
  GemmParameters found;
  found.overhead = std::exp(p[0]);
  found.compute = p[1];
  found.memory = p[2];
  found.corner = 1 + std::exp(p[3]);
  if (p.size() > 4) found.quantise = p[4];
  if (p.size() > 5) found.prologue = p[5];
  return found;
}

/// `prologue`: is K sought? Without it the formula is the catalogue's, beside the bracket.
GemmParameters search_gemm(const std::vector<GemmPoint>& points, bool quantises, bool prologue) {
  // Starts lie amid what data-centre GPUs reach; bounds are what none can.
  std::vector<Parameter> unknown{{std::log(5e-6), std::log(0.3e-6), std::log(50e-6)},
                                 {0.7, 0.05, 1.0},
                                 {0.8, 0.05, 1.2},
                                 {std::log(2.0), std::log(0.2), std::log(9.0)}};
  if (quantises) {
    unknown.push_back({0.4, 0.03, 1.2});
    if (prologue) unknown.push_back({50, 0, 1000});
  }
  const Residuals residuals = [&](const std::vector<double>& p) {
    const GemmParameters tried = gemm_parameters(p);
    std::vector<double> errors;
    errors.reserve(points.size());
    for (const GemmPoint& point : points) {
      errors.push_back(std::log(tried.seconds(point)) - point.log_seconds);
    }
    return errors;
  };
  return gemm_parameters(least_squares(unknown, residuals, log_scale));
}

class GemmFit : public KernelFit {
 public:
  GemmFit(GemmParameters parameters, bool quantises, hardware::ShapeResidual residual)
      : parameters_{parameters}, quantises_{quantises}, residual_{std::move(residual)} {}

  double seconds(const KernelSample& sample) const override {
    const double smooth = parameters_.seconds(gemm_point(sample));
    if (residual_.samples().empty()) return smooth;
    const MeasuredKernel& row = *sample.row;
    return smooth * std::exp(residual_.log_ratio({row.m, row.n, row.k}));
  }

  std::vector<std::pair<std::string, double>> parameters() const override {
    std::vector<std::pair<std::string, double>> named{{"compute_share", parameters_.compute},
                                                      {"memory_share", parameters_.memory},
                                                      {"overhead_s", parameters_.overhead},
                                                      {"corner", parameters_.corner}};
    if (quantises_) {
      named.emplace_back("quantise_share", parameters_.quantise);
      named.emplace_back("prologue_depth", parameters_.prologue);
    }
    return named;
  }

  const hardware::ShapeResidual* residual() const override {
    return residual_.samples().empty() ? nullptr : &residual_;
  }

 private:
  GemmParameters parameters_;
  bool quantises_;
  hardware::ShapeResidual residual_;
};

}  // namespace

std::unique_ptr<KernelFit> fit_gemm(const std::vector<KernelSample>& samples, Residual residual) {
  std::vector<GemmPoint> points;
  bool quantises = false;
  for (const KernelSample& sample : samples) {
    points.push_back(gemm_point(sample));
    quantises = quantises || points.back().quantising > 0;
  }
  const std::size_t unknown = quantises ? 6 : 4;
  if (points.size() < unknown) return nullptr;
  const GemmParameters found = search_gemm(points, quantises, residual == Residual::nearest);
  std::vector<hardware::ShapeResidual::Sample> left;
  if (residual == Residual::nearest) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const MeasuredKernel& row = *samples[i].row;
      left.push_back(
          {{row.m, row.n, row.k}, points[i].log_seconds - std::log(found.seconds(points[i]))});
    }
  }
  return std::make_unique<GemmFit>(found, quantises, hardware::ShapeResidual{std::move(left)});
}

}  // namespace orrery::scenarios
