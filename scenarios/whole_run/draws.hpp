#pragma once
// Random draws of a training run. Distributions are tables of equally likely values, so that a draw
// is a look-up and a seed gives the same bytes on every run. Table values are rounded to 2^-36 of
// their scale, below which C libraries may differ.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/quantity.hpp"

namespace orrery::scenarios {

/// Whole microseconds: a run of 290,000 years fits, and ledgers add up exactly.
using RunTime = Quantity<struct Microsecond, std::int64_t>;
/// A duration that is computed, before it is rounded.
using Seconds = Quantity<struct Second, double>;

RunTime run_time(Seconds seconds);
Seconds in_seconds(RunTime time);

/// 64 random bits at a time, and numbers in (0, 1).
/// Source  splitmix64: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"
class Draws {
 public:
  /// stream  two streams of one seed share no draws
  explicit Draws(std::uint64_t seed, std::uint64_t stream = 0);

  std::uint64_t bits();
  double uniform() { return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52; }
  /// Of mean 1: the leading zeros of a number count its halvings, a table has the rest.
  double exponential();

 private:
  std::uint64_t state_;
};

/// A distribution as equally likely values in increasing order.
class QuantileTable {
 public:
  static constexpr std::size_t size = 4096;

  /// Errors  other than `size` values: ContractError
  explicit QuantileTable(std::vector<double> values);

  double draw(Draws& draws) const { return values_[draws.bits() >> 52]; }
  /// The value below which a share of the distribution lies, between neighbours.
  double at(double share) const;
  double mean() const { return mean_; }

 private:
  std::vector<double> values_;
  double mean_ = 0;
};

/// One part of a restart. Shapes above 0 are gamma variables of this mean; shape 0 is constant.
struct RestartStage {
  std::string name;
  Seconds mean{};
  double shape = 0;
};

/// A gamma variable of mean 1: each value is the mean of its 4,096th part, so the mean is exact.
///   k (P(k+1, b) - P(k+1, a)) / k over each part [a, b]; P the regularised incomplete gamma
QuantileTable gamma_table(double shape);
/// A Weibull variable of mean 1. shape 1: exponential; below 1: failures come in bursts.
QuantileTable weibull_table(double shape);
/// A log-normal variable.
QuantileTable log_normal_table(double median, double spread);
/// Observed intervals, scaled to mean 1. Errors  fewer than 2, or none above 0: ContractError
QuantileTable observed_table(std::vector<double> intervals);
/// The sum of independent stages, in seconds: 2^16 points of a lattice, sorted, and averaged by 16.
/// Source  Cranley & Patterson 1976; the generators are powers of the generalised golden ratio
QuantileTable sum_table(std::span<const RestartStage> stages);

/// The i-th of n points that fill the unit interval evenly, in dimension d of at most 8, shifted by
/// the seed: samples of several inputs at once with less noise than independent draws.
double even_point(std::size_t i, std::size_t dimension, std::uint64_t seed);

}  // namespace orrery::scenarios
