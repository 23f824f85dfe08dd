#include "scenarios/whole_run/draws.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr auto table_size = QuantileTable::size;
constexpr std::uint64_t golden_bits = 0x9E3779B97F4A7C15U;

/// Rounded where C libraries agree.
double agreed(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::ldexp(1.0, std::ilogb(value) - 36);
  return std::round(value / unit) * unit;
}

/// -log(1/2 + i/8192 + 1/16384), i < 4096: within a part the logarithm is nearly straight.
const std::array<double, table_size>& logarithms() {
  static const std::array<double, table_size> table = [] {
    std::array<double, table_size> made{};
    for (std::size_t i = 0; i < table_size; ++i) {
      made[i] = agreed(-std::log(0.5 + (static_cast<double>(i) + 0.5) / (2.0 * table_size)));
    }
    return made;
  }();
  return table;
}

/// The table of values at the middle of each part.
template <class Quantile>
std::vector<double> at_middles(Quantile quantile) {
  std::vector<double> values(table_size);
  for (std::size_t i = 0; i < table_size; ++i) {
    values[i] = quantile((static_cast<double>(i) + 0.5) / static_cast<double>(table_size));
  }
  return values;
}

/// Powers of 1/g, g the real root of x^9 = x + 1.
/// Source  Roberts 2018, "The unreasonable effectiveness of quasirandom sequences"
double lattice_step(std::size_t dimension) {
  constexpr double root = 1.0850702454914509;
  double step = 1;
  for (std::size_t d = 0; d <= dimension; ++d) step /= root;
  return step;
}

/// Values of a function that depend on its argument alone, each computed once: a survey of clusters
/// asks for the same tables a hundred times.
template <class Key, class Value>
class Remembered {
 public:
  template <class Compute>
  Value of(const Key& key, Compute compute) {
    {
      const std::lock_guard lock{mutex_};
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    Value made = compute();
    const std::lock_guard lock{mutex_};
    return known_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Value> known_;
};

std::vector<double> scaled_to_mean_one(std::vector<double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& each : values) each /= mean;
  return values;
}

}  // namespace

RunTime run_time(Seconds seconds) {
  return nearest_count<RunTime>(seconds.count() * 1e6);
}

Seconds in_seconds(RunTime time) {
  return Seconds{static_cast<double>(time.count()) * 1e-6};
}

Draws::Draws(std::uint64_t seed, std::uint64_t stream)
    : state_{seed * golden_bits + (stream + 1) * 0xD1B54A32D192ED03U} {
  bits();
}

std::uint64_t Draws::bits() {
  std::uint64_t mixed = state_ += golden_bits;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31);
}

double Draws::exponential() {
  constexpr double log_of_two = 0.69314718055994530942;
  const std::uint64_t drawn = bits();
  const int halvings = std::countl_zero(drawn | 1U);
  // Below the leading one: 12 bits choose the part, the rest a place around its middle.
  const std::uint64_t rest = halvings < 63 ? drawn << (halvings + 1) : 0;
  const std::size_t part = rest >> 52;
  const double middle = 0.5 + (static_cast<double>(part) + 0.5) / (2.0 * table_size);
  const double beside =
      (static_cast<double>((rest << 12) >> 12) * 0x1p-52 - 0.5) / (2.0 * table_size);
  const double ratio = beside / middle;
  return halvings * log_of_two + logarithms()[part] - ratio + ratio * ratio / 2;
}

QuantileTable::QuantileTable(std::vector<double> values) : values_{std::move(values)} {
  ensure(values_.size() == size, "a quantile table has 4,096 values");
  for (double& each : values_) each = agreed(each);
  std::ranges::sort(values_);
  mean_ = std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(size);
}

double QuantileTable::at(double share) const {
  const double place =
      std::clamp(share * static_cast<double>(size) - 0.5, 0.0, static_cast<double>(size - 1));
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, size - 1);
  return values_[low] + (values_[high] - values_[low]) * (place - static_cast<double>(low));
}

namespace {

QuantileTable computed_gamma(double shape) {
  using boost::math::gamma_p;
  std::vector<double> values(table_size);
  double below = 0;
  for (std::size_t i = 0; i < table_size; ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(table_size);
    const bool last = i + 1 == table_size;
    const double above = last ? 1 : gamma_p(shape + 1, boost::math::gamma_p_inv(shape, share));
    values[i] = (above - below) * static_cast<double>(table_size);
    below = above;
  }
  return QuantileTable{std::move(values)};
}

}  // namespace

QuantileTable gamma_table(double shape) {
  static Remembered<double, QuantileTable> tables;
  return tables.of(shape, [&] { return computed_gamma(shape); });
}

QuantileTable weibull_table(double shape) {
  std::vector<double> values(table_size);
  const double a = 1 + 1 / shape;
  double below = 0;  // E[x; x <= q] / E[x] of x = y^(1/shape), y exponential: P(1 + 1/shape, y)
  for (std::size_t i = 0; i < table_size; ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(table_size);
    const double above = i + 1 == table_size ? 1 : boost::math::gamma_p(a, -std::log1p(-share));
    values[i] = (above - below) * static_cast<double>(table_size);
    below = above;
  }
  return QuantileTable{std::move(values)};
}

QuantileTable log_normal_table(double median, double spread) {
  const boost::math::normal normal;
  return QuantileTable{at_middles([&](double share) {
    return median * std::exp(spread * boost::math::quantile(normal, share));
  })};
}

QuantileTable observed_table(std::vector<double> intervals) {
  ensure(intervals.size() >= 2, "a distribution of intervals needs two of them");
  std::ranges::sort(intervals);
  ensure(intervals.back() > 0, "intervals are above 0");
  const auto most = static_cast<double>(intervals.size());
  return QuantileTable{scaled_to_mean_one(
      at_middles([&](double share) { return intervals[static_cast<std::size_t>(share * most)]; }))};
}

namespace {

/// Mean and shape of each stage that varies.
using VaryingStages = std::vector<std::pair<double, double>>;

std::vector<double> computed_sum(const VaryingStages& stages) {
  constexpr std::size_t each = 16;
  std::vector<double> sums(table_size * each, 0);
  for (std::size_t dimension = 0; dimension < stages.size(); ++dimension) {
    const auto& [mean, shape] = stages[dimension];
    const QuantileTable one = gamma_table(shape);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += mean * one.at(even_point(i, dimension, 0));
    }
  }
  std::ranges::sort(sums);
  std::vector<double> values(table_size);
  for (std::size_t i = 0; i < table_size; ++i) {
    for (std::size_t j = 0; j < each; ++j) values[i] += sums[i * each + j];
    values[i] /= static_cast<double>(each);
  }
  return values;
}

}  // namespace

QuantileTable sum_table(std::span<const RestartStage> stages) {
  static Remembered<VaryingStages, std::vector<double>> tables;
  VaryingStages varying;
  double constant = 0;
  for (const RestartStage& stage : stages) {
    if (stage.shape <= 0)
      constant += stage.mean.count();
    else if (stage.mean.count() > 0)
      varying.emplace_back(stage.mean.count(), stage.shape);
  }
  std::vector<double> values = tables.of(varying, [&] { return computed_sum(varying); });
  for (double& each : values) each += constant;
  return QuantileTable{std::move(values)};
}

double even_point(std::size_t i, std::size_t dimension, std::uint64_t seed) {
  double shift = 0.5;
  if (seed != 0) shift = Draws{seed, dimension + 1000}.uniform();
  double whole = 0;
  return std::modf(shift + static_cast<double>(i) * lattice_step(dimension), &whole);
}

}  // namespace orrery::scenarios
