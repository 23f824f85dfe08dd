#include "calibrate/fit/curves.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/minimise.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using hardware::GemmCurve;
using hardware::KernelCurve;
using hardware::ShapeResidual;
using hardware::SizeTable;

double log_ratio(Time measured, Time fitted) {
  return std::log(ratio(measured, std::max(fitted, Time{1})));
}

double error_pct(Time measured, Time predicted) {
  return 100 * std::abs(ratio(predicted, measured) - 1);
}

/// Shares from unbounded variables: most / (1 + e^-v).
GemmCurve curve_of(const std::vector<double>& variables, double most_share) {
  const auto share = [&](double v) { return std::max(1e-6, most_share / (1 + std::exp(-v))); };
  return {.compute_share = share(variables[0]),
          .memory_share = share(variables[1]),
          .overhead = from_seconds(std::exp(std::min(variables[2], 0.0))),
          .corner = 4,
          .origin = {}};
}

Time plain_time(const GemmCurve& curve, const Roof& roof, const ProductPoint& point) {
  return time_of(curve, roof.peak, roof.memory, point.work, point.traffic);
}

GemmCurve fit_plain(const std::vector<ProductPoint>& points, const Roof& roof) {
  Time fastest = points.front().time;
  for (const ProductPoint& point : points) fastest = std::min(fastest, point.time);
  const auto cost = [&](const std::vector<double>& variables) {
    const GemmCurve curve = curve_of(variables, roof.most_share);
    double sum = 0;
    for (const ProductPoint& point : points) {
      sum += robust(log_ratio(point.time, plain_time(curve, roof, point)));
    }
    return sum;
  };
  std::vector<double> best;
  for (const double share_of_start :
       {0.02, 0.3}) {  // overhead may be little or most of the fastest
    const double start = std::log(std::max(1e-9, share_of_start * seconds(fastest)));
    const std::vector<double> found = minimise(cost, {0.5, 0.5, start}, 1.0);
    if (best.empty() || cost(found) < cost(best)) best = found;
  }
  return curve_of(best, roof.most_share);
}

std::vector<ShapeResidual::Sample> residuals_of(const std::vector<ProductPoint>& points,
                                                const GemmCurve& curve, const Roof& roof) {
  std::vector<ShapeResidual::Sample> samples;
  for (const ProductPoint& point : points) {
    samples.push_back({point.shape, log_ratio(point.time, plain_time(curve, roof, point))});
  }
  return samples;
}

/// Points in five parts, dealt out in turn.
std::optional<double> products_left_out(const std::vector<ProductPoint>& points, const Roof& roof) {
  constexpr std::size_t parts = 5;
  std::vector<double> errors;
  for (std::size_t part = 0; part < parts && points.size() >= parts; ++part) {
    std::vector<ProductPoint> seen, unseen;
    for (std::size_t i = 0; i < points.size(); ++i) {
      (i % parts == part ? unseen : seen).push_back(points[i]);
    }
    const GemmCurve curve = fit_plain(seen, roof);
    const ShapeResidual residual{residuals_of(seen, curve, roof)};
    for (const ProductPoint& point : unseen) {
      const Time predicted =
          scaled(plain_time(curve, roof, point), std::exp(residual.log_ratio(point.shape)));
      errors.push_back(error_pct(point.time, predicted));
    }
  }
  if (errors.empty()) return std::nullopt;
  return median_of(errors);
}

/// Distinct sizes with their median times.
std::vector<SizeTable::Point> sizes_of(std::vector<KernelPoint> points) {
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.traffic < b.traffic; });
  std::vector<SizeTable::Point> sizes;
  for (std::size_t begin = 0; begin < points.size();) {
    std::vector<double> times;
    std::size_t end = begin;
    while (end < points.size() && ratio(points[end].traffic, points[begin].traffic) <= 1.02) {
      times.push_back(static_cast<double>(points[end++].time.count()));
    }
    sizes.push_back({points[begin].traffic, Time{std::max(1LL, std::llround(median_of(times)))}});
    begin = end;
  }
  return sizes;
}

KernelCurve fit_line(const std::vector<SizeTable::Point>& sizes) {
  const auto curve_at = [](const std::vector<double>& variables) {
    return KernelCurve{.table = {},
                       .overhead = from_seconds(std::exp(std::min(variables[0], 0.0))),
                       .rate = Bandwidth{std::exp(std::clamp(variables[1], 0.0, 40.0))}};
  };
  const auto cost = [&](const std::vector<double>& variables) {
    const KernelCurve curve = curve_at(variables);
    double sum = 0;
    for (const auto& [size, time] : sizes) sum += robust(log_ratio(time, curve.at(size)));
    return sum;
  };
  const auto& [size, time] = sizes.back();
  const double rate = static_cast<double>(size.count()) / seconds(time);
  return curve_at(
      minimise(cost, {std::log(0.3 * seconds(sizes.front().second)), std::log(rate)}, 0.7));
}

std::vector<SizeTable::Point> without(const std::vector<SizeTable::Point>& sizes,
                                      std::size_t left_out) {
  std::vector<SizeTable::Point> rest = sizes;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
  return rest;
}

/// Inner sizes in turn: the ends would be extrapolated, which a table is not for.
template <class Fit>
std::optional<double> sizes_left_out(const std::vector<SizeTable::Point>& sizes, Fit fit) {
  std::vector<double> errors;
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) {
    errors.push_back(error_pct(sizes[i].second, fit(without(sizes, i)).at(sizes[i].first)));
  }
  if (errors.empty()) return std::nullopt;
  return median_of(errors);
}

}  // namespace

ProductFit fit_products(const std::vector<ProductPoint>& points, const Roof& roof) {
  ensure(!points.empty(), "a curve is fitted to points");
  ProductFit fit;
  fit.curve = fit_plain(points, roof);
  fit.residuals = residuals_of(points, fit.curve, roof);
  fit.leave_out_error_pct = products_left_out(points, roof);
  std::vector<double> plain;
  for (const ProductPoint& point : points) {
    plain.push_back(error_pct(point.time, plain_time(fit.curve, roof, point)));
  }
  fit.plain_error_pct = median_of(plain);
  return fit;
}

KernelFit fit_kernel(const std::vector<KernelPoint>& points) {
  ensure(!points.empty(), "a curve is fitted to points");
  const std::vector<SizeTable::Point> sizes = sizes_of(points);
  KernelFit fit;
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
