#include "calibrate/fit/attention_curve.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/fitting/minimise.hpp"
#include "sim/errors.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

using hardware::AttentionCurve;
using hardware::Pass;

constexpr double noise_of_attention = 0.1;  // an error beyond 10 % counts linearly

/// Which parameters the points determine.
struct Contrasts {
  explicit Contrasts(const std::vector<AttentionPoint>& points) {
    bool causal = false, whole = false, forward = false, back = false;
    for (const auto& [call, time] : points) {
      narrow = narrow || call.head_dim < 128;
      wide = wide || call.head_dim > 64;
      (call.causal ? causal : whole) = true;
      (call.pass == Pass::forward ? forward : back) = true;
    }
    penalty = causal && whole;
    backward = forward && back;
  }
  bool narrow = false, wide = false, penalty = false, backward = false;
};

/// The curve of parameters `v`: shares, and logarithms of the rest.
AttentionCurve attention_of(const std::vector<double>& v) {
  return {.share_64 = v[0],
          .share_128 = v[1],
          .half_length = std::exp(v[2]),
          .causal_penalty = std::exp(v[3]),
          .backward_ratio = std::exp(v[4]),
          .origin = {}};
}

double miss(const AttentionCurve& curve, FlopRate peak, const AttentionPoint& point) {
  const Time fitted = std::max(Time{1}, time_of(curve, peak, point.call));
  return std::log(ratio(point.time, fitted));
}

AttentionCurve fitted_attention(const std::vector<AttentionPoint>& points, FlopRate peak) {
  const Contrasts found{points};
  const hardware::Unknown fixed{0, 0, 0};
  std::optional<AttentionCurve> best;
  double lowest = 0;
  for (const double start : {0.05, 0.5}) {  // of peak
    const hardware::Unknown share{start, 1e-4, 1};
    const std::vector<hardware::Unknown> unknowns{
        share,
        share,
        {std::log(300.0), 0, std::log(1e5)},
        found.penalty ? hardware::Unknown{std::log(0.5), std::log(1e-3), std::log(50.0)} : fixed,
        found.backward ? hardware::Unknown{std::log(0.7), std::log(0.01), std::log(2.0)} : fixed};
    const auto curve_of = [&](const std::vector<double>& v) {
      AttentionCurve curve = attention_of(v);
      if (!found.narrow) curve.share_64 = curve.share_128;
      if (!found.wide) curve.share_128 = curve.share_64;
      if (!found.penalty) curve.causal_penalty = 0;
      return curve;
    };
    const auto cost = [&](const std::vector<double>& v) {
      double sum = 0;
      for (const AttentionPoint& each : points) {
        sum += hardware::soft_l1(miss(curve_of(v), peak, each), noise_of_attention);
      }
      return sum;
    };
    const std::vector<double> at = hardware::minimise(unknowns, cost);
    const double value = cost(at);
    if (best && value >= lowest) continue;
    best = curve_of(at);
    lowest = value;
  }
  return *best;
}

double attention_error_pct(double log_miss) {
  return 100 * std::abs(std::exp(-log_miss) - 1);
}

}  // namespace

AttentionFit fit_attention(const std::vector<AttentionPoint>& points, FlopRate peak) {
  ensure(!points.empty(), "a curve is fitted to points");
  AttentionFit fit;
  fit.curve = fitted_attention(points, peak);
  std::vector<double> own, unseen_errors;
  for (const AttentionPoint& each : points)
    own.push_back(attention_error_pct(miss(fit.curve, peak, each)));
  fit.median_error_pct = median(own);
  constexpr std::size_t parts = 5;
  for (std::size_t part = 0; part < parts && points.size() >= 2 * parts; ++part) {
    std::vector<AttentionPoint> seen;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i % parts != part) seen.push_back(points[i]);
    }
    const AttentionCurve curve = fitted_attention(seen, peak);
    for (std::size_t i = part; i < points.size(); i += parts) {
      unseen_errors.push_back(attention_error_pct(miss(curve, peak, points[i])));
    }
  }
  if (!unseen_errors.empty()) fit.leave_out_error_pct = median(unseen_errors);
  return fit;
}

}  // namespace orrery::calibrate
