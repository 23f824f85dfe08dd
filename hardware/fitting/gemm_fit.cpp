#include "hardware/fitting/gemm_fit.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

Unknown logarithm(const Unknown& of) {
  return {std::log(of.start), std::log(of.low), std::log(of.high)};
}

GemmFormula formula_of(const std::vector<double>& p) {
  return {.overhead = std::exp(p[0]),
          .compute = p[1],
          .memory = p[2],
          .corner = 1 + std::exp(p[3]),
          .quantise = p[4],
          .prologue = p[5]};
}

double miss(const GemmFormula& formula, const GemmPoint& point) {
  return point.log_seconds - std::log(formula.seconds(point));
}

}  // namespace

double GemmFormula::seconds(const GemmPoint& point) const {
  const double x = point.compute * (1 + prologue / static_cast<double>(point.shape.k)) / compute;
  const double y = point.moving / memory;
  const double larger = std::max(x, y);
  const double ratio = std::min(x, y) / larger;
  return overhead + larger * std::pow(1 + std::pow(ratio, corner), 1 / corner) +
         point.quantising / quantise;
}

GemmCurve GemmFormula::curve() const {
  return {.compute_share = compute,
          .memory_share = memory,
          .overhead = from_seconds(overhead),
          .corner = corner,
          .origin = {}};
}

std::size_t GemmSearch::unknowns() const {
  std::size_t free = 0;
  for (const Unknown& each : {overhead, compute, memory, corner, quantise, prologue}) {
    free += each.low == each.high ? 0 : 1;
  }
  return free;
}

GemmFormula fit_gemm(const std::vector<GemmPoint>& points, const GemmSearch& search) {
  ensure(!points.empty(), "a curve is fitted to points");
  const Unknown over_one{search.corner.start - 1, search.corner.low - 1, search.corner.high - 1};
  const std::vector<Unknown> unknowns{logarithm(search.overhead), search.compute,  search.memory,
                                      logarithm(over_one),        search.quantise, search.prologue};
  return formula_of(minimise(unknowns, [&](const std::vector<double>& p) {
    return cost_of(formula_of(p), points, search.scale);
  }));
}

double cost_of(const GemmFormula& formula, const std::vector<GemmPoint>& points, double scale) {
  double sum = 0;
  for (const GemmPoint& each : points) sum += soft_l1(miss(formula, each), scale);
  return sum;
}

std::vector<ShapeResidual::ResidualSample> residuals_of(const GemmFormula& formula,
                                                        const std::vector<GemmPoint>& points) {
  std::vector<ShapeResidual::ResidualSample> samples;
  for (const GemmPoint& each : points) samples.push_back({each.shape, miss(formula, each)});
  return samples;
}

}  // namespace orrery::hardware
