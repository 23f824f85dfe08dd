#include "calibrate/fit/curves.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/fitting/gemm_fit.hpp"
#include "sim/errors.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

using hardware::KernelCurve;
using hardware::ShapeResidual;
using hardware::SizeTable;

constexpr double noise = 0.1;  // an error beyond 10 % counts linearly

double log_ratio(Time measured, Time fitted) {
  return std::log(ratio(measured, std::max(fitted, Time{1})));
}

double error_pct(Time measured, Time predicted) {
  return 100 * std::abs(ratio(predicted, measured) - 1);
}

hardware::GemmPoint gemm_point(const ProductPoint& point, const Roof& roof) {
  return {.shape = point.shape,
          .compute = static_cast<double>(point.work.count()) / roof.peak.count(),
          .moving = static_cast<double>(point.traffic.count()) / roof.memory.count(),
          .log_seconds = std::log(seconds(point.time))};
}

/// The corner is fixed at the catalogue's. Two starts for the overhead, because it may be a small
/// or a large part of the fastest point's time.
hardware::GemmFormula fit_formula(const std::vector<hardware::GemmPoint>& points,
                                  const Roof& roof) {
  double fastest = 0;
  for (const hardware::GemmPoint& each : points) fastest = std::min(fastest, each.log_seconds);
  const hardware::Unknown share{0.6 * roof.most_share, 1e-4, roof.most_share};
  std::optional<hardware::GemmFormula> best;
  for (const double of_fastest : {0.02, 0.3}) {
    const double start = std::max(1.01e-9, of_fastest * std::exp(fastest));
    const hardware::GemmFormula found = hardware::fit_gemm(points, {.overhead = {start, 1e-9, 1},
                                                                    .compute = share,
                                                                    .memory = share,
                                                                    .corner = {4, 4, 4},
                                                                    .scale = noise});
    if (!best || cost_of(found, points, noise) < cost_of(*best, points, noise)) best = found;
  }
  return *best;
}

double error_pct(const hardware::GemmFormula& formula, const hardware::GemmPoint& point,
                 double log_ratio) {
  return 100 * std::abs(formula.seconds(point) * std::exp(log_ratio - point.log_seconds) - 1);
}

/// Median error of five-fold cross-validation, every fifth point left out in turn.
std::optional<double> products_left_out(const std::vector<hardware::GemmPoint>& points,
                                        const Roof& roof) {
  constexpr std::size_t parts = 5;
  std::vector<double> errors;
  for (std::size_t part = 0; part < parts && points.size() >= parts; ++part) {
    std::vector<hardware::GemmPoint> seen, unseen;
    for (std::size_t i = 0; i < points.size(); ++i) {
      (i % parts == part ? unseen : seen).push_back(points[i]);
    }
    const hardware::GemmFormula formula = fit_formula(seen, roof);
    const ShapeResidual residual{residuals_of(formula, seen)};
    for (const hardware::GemmPoint& point : unseen) {
      errors.push_back(error_pct(formula, point, residual.log_ratio(point.shape)));
    }
  }
  if (errors.empty()) return std::nullopt;
  return median(std::move(errors));
}

/// Distinct sizes with their median times.
std::vector<SizeTable::Point> sizes_of(std::vector<KernelPoint> points) {
  std::ranges::sort(points, [](const auto& a, const auto& b) { return a.traffic < b.traffic; });
  std::vector<SizeTable::Point> sizes;
  for (std::size_t begin = 0; begin < points.size();) {
    std::vector<double> times;
    std::size_t end = begin;
    while (end < points.size() && ratio(points[end].traffic, points[begin].traffic) <= 1.02) {
      times.push_back(static_cast<double>(points[end++].time.count()));
    }
    sizes.push_back({points[begin].traffic, Time{std::max(1LL, std::llround(median(times)))}});
    begin = end;
  }
  return sizes;
}

KernelCurve fit_line(const std::vector<SizeTable::Point>& sizes) {
  const auto curve_at = [](const std::vector<double>& found) {
    return KernelCurve{.table = {},
                       .overhead = from_seconds(std::exp(found[0])),
                       .rate = Bandwidth{std::exp(found[1])}};
  };
  const auto& [size, time] = sizes.back();
  const double fastest = std::clamp(0.3 * seconds(sizes.front().second), 2e-12, 0.5);
  const double rate = std::clamp(static_cast<double>(size.count()) / seconds(time), 1e1, 1e16);
  const std::vector<hardware::Unknown> unknowns{{std::log(fastest), std::log(1e-12), 0},
                                                {std::log(rate), 0, 40}};
  return curve_at(hardware::least_squares(
      unknowns,
      [&](const std::vector<double>& tried) {
        const KernelCurve curve = curve_at(tried);
        std::vector<double> misses;
        for (const auto& each : sizes) {
          misses.push_back(log_ratio(each.second, curve.at(each.first)));
        }
        return misses;
      },
      noise));
}

std::vector<SizeTable::Point> without(const std::vector<SizeTable::Point>& sizes,
                                      std::size_t left_out) {
  std::vector<SizeTable::Point> rest = sizes;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
  return rest;
}

/// Median error of the inner sizes, each left out in turn. The first and the last size are not:
/// predicting them would be extrapolation, which a table is not for.
template <class Fit>
std::optional<double> sizes_left_out(const std::vector<SizeTable::Point>& sizes, Fit fit) {
  std::vector<double> errors;
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) {
    errors.push_back(error_pct(sizes[i].second, fit(without(sizes, i)).at(sizes[i].first)));
  }
  if (errors.empty()) return std::nullopt;
  return median(errors);
}

}  // namespace

GemmCalibration fit_gemms(const std::vector<ProductPoint>& points, const Roof& roof) {
  ensure(!points.empty(), "a curve is fitted to points");
  std::vector<hardware::GemmPoint> measured;
  for (const ProductPoint& each : points) measured.push_back(gemm_point(each, roof));
  const hardware::GemmFormula formula = fit_formula(measured, roof);
  std::vector<double> plain;
  for (const hardware::GemmPoint& each : measured) plain.push_back(error_pct(formula, each, 0));
  return {.curve = formula.curve(),
          .residuals = residuals_of(formula, measured),
          .leave_out_error_pct = products_left_out(measured, roof),
          .plain_error_pct = median(std::move(plain))};
}

TrafficFit fit_kernel(const std::vector<KernelPoint>& points) {
  ensure(!points.empty(), "a curve is fitted to points");
  const std::vector<SizeTable::Point> sizes = sizes_of(points);
  TrafficFit fit;
  fit.sizes = sizes.size();
  const auto of_line = sizes_left_out(sizes, fit_line);
  const auto of_table = sizes_left_out(
      sizes, [](std::vector<SizeTable::Point> rest) { return SizeTable{std::move(rest)}; });
  const bool line = of_line && of_table && *of_line < *of_table;
  fit.leave_out_error_pct = line ? of_line : of_table;
  if (line) {
    fit.curve = fit_line(sizes);
  } else {
    fit.curve.table = SizeTable{sizes};
  }
  return fit;
}

std::optional<double> interpolation_error_pct(const SizeTable& table) {
  return sizes_left_out(table.points(), [](std::vector<SizeTable::Point> rest) {
    return SizeTable{std::move(rest)};
  });
}

}  // namespace orrery::calibrate
