#include "hardware/curves/shape_residual.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

constexpr std::size_t neighbours = 8;
constexpr double softening = 0.05;  // octaves; limits the weight of an exact match

}  // namespace

double nearest_mean(std::vector<double> distances, const std::vector<double>& log_ratios) {
  ensure(distances.size() == log_ratios.size(), "every sample has its distance");
  std::vector<std::pair<double, double>> near(distances.size());
  for (std::size_t i = 0; i < near.size(); ++i) near[i] = {distances[i], log_ratios[i]};
  const std::size_t count = std::min(neighbours, near.size());
  const auto end = near.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(near.begin(), end, near.end());
  double weights = 0;
  double sum = 0;
  for (auto sample = near.begin(); sample != end; ++sample) {
    const double weight = 1 / ((sample->first + softening) * (sample->first + softening));
    weights += weight;
    sum += weight * sample->second;
  }
  return weights > 0 ? sum / weights : 0;
}

ShapeResidual::GridPlace ShapeResidual::place_of(const GemmSize& shape) {
  ensure(shape.m >= 1 && shape.n >= 1 && shape.k >= 1, "a GEMM has three dimensions of at least 1");
  return {std::log2(static_cast<double>(shape.m)), std::log2(static_cast<double>(shape.n)),
          std::log2(static_cast<double>(shape.k))};
}

ShapeResidual::ShapeResidual(std::vector<ResidualSample> samples) : samples_{std::move(samples)} {
  places_.reserve(samples_.size());
  for (const ResidualSample& sample : samples_) places_.push_back(place_of(sample.shape));
}

double ShapeResidual::log_ratio(const GemmSize& shape) const {
  const GridPlace here = place_of(shape);
  std::vector<double> distances;
  std::vector<double> ratios;
  distances.reserve(samples_.size());
  ratios.reserve(samples_.size());
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const GridPlace& there = places_[i];
    distances.push_back(std::hypot(there.m - here.m, there.n - here.n, there.k - here.k));
    ratios.push_back(samples_[i].log_ratio);
  }
  return nearest_mean(std::move(distances), ratios);
}

}  // namespace orrery::hardware
