#include "scenarios/fitting/software_fitter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardware/fitting/minimise.hpp"

namespace orrery::scenarios {

namespace {

constexpr double robust_from = 0.1;
constexpr double moved = 1.3;          // factor by which a number is moved to test it
constexpr double worth_moving = 0.05;  // percentage points: for less a number keeps its start
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Loss of one logarithmic error: half its square near zero, linear beyond robust_from.
double loss_of(double error) {
  return hardware::soft_l1(error, robust_from) / 2;
}

/// The typical error in percent: the one whose squared value is twice the loss.
double typical(double loss) {
  return 100 * std::sqrt(2 * loss);
}

}  // namespace

SoftwareFitter::SoftwareFitter(SoftwareBench& bench, const models::Software& profile)
    : bench_{bench} {
  for (const SoftwareNumber& each : software_numbers()) {
    own_.push_back(each.get(profile));
    from_.push_back(std::clamp(own_.back(), each.low, each.high));
  }
}

std::vector<double> SoftwareFitter::fit(const std::vector<bool>& seen, bool& complete) {
  std::vector<bool> held(own_.size(), false);
  while (true) {
    const std::vector<double> numbers = minimum(seen, held, complete);
    const auto least = least_determined(numbers, seen, complete);
    if (!least) return numbers;
    held[*least] = true;
  }
}

double SoftwareFitter::growth_of(std::size_t number, const std::vector<double>& numbers,
                                 const std::vector<bool>& seen, bool& complete) {
  const auto here = loss_at(numbers, seen, Penalty::is_left);
  double least = infinity;
  for (const double factor : {moved, 1 / moved}) {
    std::vector<double> away = numbers;
    away[number] *= factor;
    const auto there = loss_at(away, seen, Penalty::is_left);
    if (!here || !there) {
      complete = false;
      return 0;
    }
    least = std::min(least, typical(*there) - typical(*here));
  }
  return least;
}

/// Among the numbers that have moved, the one that the rows determine least; nothing if they
/// determine all.
std::optional<std::size_t> SoftwareFitter::least_determined(const std::vector<double>& numbers,
                                                            const std::vector<bool>& seen,
                                                            bool& complete) {
  std::optional<std::size_t> found;
  double least = least_growth;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == own_[i]) continue;
    const double growth = growth_of(i, numbers, seen, complete);
    if (!complete) return std::nullopt;
    if (growth >= least) continue;
    least = growth;
    found = i;
  }
  return found;
}

/// The numbers that minimise the loss. The unknowns of the search are counts of strides from the
/// start.
std::vector<double> SoftwareFitter::minimum(const std::vector<bool>& seen,
                                            const std::vector<bool>& held, bool& complete) {
  std::vector<hardware::Unknown> unknowns(own_.size());
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const SoftwareNumber& number = software_numbers()[i];
    const auto strides = [&](double value) {
      return std::log(value / from_[i]) / std::log(number.stride);
    };
    if (!held[i]) unknowns[i] = {0, std::min(0.0, strides(number.low)), strides(number.high)};
  }
  struct Stopped {};
  double lowest = infinity;
  std::vector<double> best = own_;
  try {
    hardware::minimise(unknowns,
                       [&](const std::vector<double>& strides) {
                         const std::vector<double> numbers = at(strides);
                         const auto loss = loss_at(numbers, seen);
                         if (!loss) throw Stopped{};
                         if (*loss < lowest) best = numbers;
                         lowest = std::min(lowest, *loss);
                         return *loss;
                       },
                       {.precision = 1e-6, .calls = 1000});
  } catch (const Stopped&) {
    complete = false;
  }
  return with_kept(rounded(std::move(best)), seen);
}

/// Mean loss of the rows seen, with the penalty for moving numbers from the start if `pull` counts.
std::optional<double> SoftwareFitter::loss_at(const std::vector<double>& numbers,
                                              const std::vector<bool>& seen, Penalty penalty) {
  const auto errors = bench_.errors(numbers);
  if (!errors) return std::nullopt;
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) continue;
    sum += loss_of((*errors)[i]);
    ++count;
  }
  if (penalty == Penalty::counts) sum += penalty_of(numbers);
  return sum / count;
}

double SoftwareFitter::penalty_of(const std::vector<double>& numbers) const {
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == own_[i]) continue;
    const double octaves = std::log2(numbers[i] / from_[i]);
    sum += loss_of(0.05) * octaves * octaves;
  }
  return sum;
}

/// The numbers, except that those which gain too little by moving go back to their start.
std::vector<double> SoftwareFitter::with_kept(std::vector<double> numbers,
                                              const std::vector<bool>& seen) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<double> kept = numbers;
    kept[i] = own_[i];
    const auto here = loss_at(numbers, seen);
    const auto there = loss_at(kept, seen);
    if (here && there && typical(*there) - typical(*here) < worth_moving) numbers = kept;
  }
  return numbers;
}

std::vector<double> SoftwareFitter::at(const std::vector<double>& strides) const {
  std::vector<double> numbers = own_;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (strides[i] == 0) continue;
    numbers[i] = from_[i] * std::pow(software_numbers()[i].stride, strides[i]);
  }
  return numbers;
}

/// Rounds numbers as a profile writes them; those that did not move stay as they are.
std::vector<double> SoftwareFitter::rounded(std::vector<double> numbers) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != own_[i]) numbers[i] = software_numbers()[i].rounded(numbers[i]);
  }
  return numbers;
}

}  // namespace orrery::scenarios
