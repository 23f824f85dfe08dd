#include "calibrate/fit/attention_curve.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/minimise.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using hardware::AttentionCurve;
using hardware::Pass;

/// What the points can tell apart.
struct Told {
  explicit Told(const std::vector<AttentionPoint>& points) {
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

/// Variables without bounds: shares by 1 / (1 + e^-v), a length and a ratio by e^v.
AttentionCurve attention_of(const std::vector<double>& v, const Told& told) {
  const auto share = [](double of) { return std::clamp(1 / (1 + std::exp(-of)), 1e-4, 1.0); };
  AttentionCurve curve;
  curve.share_64 = share(told.narrow ? v[0] : v[1]);
  curve.share_128 = share(told.wide ? v[1] : v[0]);
  curve.half_length = std::min(1e5, std::exp(v[2]));
  curve.causal_penalty = told.penalty ? std::min(50.0, std::exp(v[3])) : 0;
  curve.backward_ratio = told.backward ? std::clamp(std::exp(v[4]), 0.01, 2.0) : 1;
  return curve;
}

double miss(const AttentionCurve& curve, FlopRate peak, const AttentionPoint& point) {
  const Time fitted = std::max(Time{1}, time_of(curve, peak, point.call));
  return std::log(ratio(point.time, fitted));
}

AttentionCurve fitted_attention(const std::vector<AttentionPoint>& points, FlopRate peak) {
  const Told told{points};
  const auto cost = [&](const std::vector<double>& variables) {
    const AttentionCurve curve = attention_of(variables, told);
    double sum = 0;
    for (const AttentionPoint& each : points) sum += robust(miss(curve, peak, each));
    return sum;
  };
  std::vector<double> best;
  for (const double share : {-3.0, 0.0}) {  // of peak: a twentieth, a half
    const std::vector<double> start{share, share, std::log(300.0), std::log(0.5), std::log(0.7)};
    std::vector<double> found = minimise(cost, minimise(cost, start, 0.7), 0.2);
    if (best.empty() || cost(found) < cost(best)) best = std::move(found);
  }
  return attention_of(best, told);
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
  fit.median_error_pct = median_of(own);
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
  if (!unseen_errors.empty()) fit.leave_out_error_pct = median_of(unseen_errors);
  return fit;
}

}  // namespace orrery::calibrate
