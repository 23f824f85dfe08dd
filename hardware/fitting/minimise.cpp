#include "hardware/fitting/minimise.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <nlopt.hpp>

#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

constexpr double first_step = 0.1;    // fraction of the range between the bounds
constexpr double second_step = 0.01;  // ... when starting near the minimum

/// The free unknowns, each scaled to [0, 1] between its bounds, and the best point so far.
class UnitBox {
 public:
  UnitBox(const std::vector<Unknown>& unknowns, const Cost& cost, const SearchLimits& limits)
      : unknowns_{unknowns}, cost_{cost}, limits_{limits} {
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      const Unknown& each = unknowns[i];
      ensure(each.low <= each.start && each.start <= each.high, "a search starts in its bounds");
      if (each.low == each.high) continue;
      free_.push_back(i);
      best_.push_back((each.start - each.low) / (each.high - each.low));
    }
    start_ = best_;
    lowest_ = cost_(numbers(best_));
  }

  std::size_t size() const { return free_.size(); }
  std::vector<double> answer() const { return numbers(best_); }

  void search(nlopt::algorithm algorithm, double step) {
    nlopt::opt search{algorithm, static_cast<unsigned>(size())};
    search.set_lower_bounds(0);
    search.set_upper_bounds(1);
    search.set_min_objective(&UnitBox::called, this);
    search.set_initial_step(step);
    search.set_ftol_rel(limits_.precision);
    search.set_xtol_abs(limits_.precision);
    search.set_maxeval(limits_.calls);
    std::vector<double> at = best_;
    double value = lowest_;
    try {
      search.optimize(at, value);
    } catch (const nlopt::roundoff_limited&) {  // converged to rounding error
    } catch (const nlopt::forced_stop&) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  static double called(const std::vector<double>& at, std::vector<double>&, void* self) {
    auto& box = *static_cast<UnitBox*>(self);
    try {
      return box.at(at);
    } catch (...) {  // no exception may pass through NLopt's C code
      box.failure_ = std::current_exception();
      throw nlopt::forced_stop{};
    }
  }
  double at(const std::vector<double>& place) {
    const double value = cost_(numbers(place));
    if (value < lowest_) {
      lowest_ = value;
      best_ = place;
    }
    return value;
  }
  std::vector<double> numbers(const std::vector<double>& place) const {
    std::vector<double> found;
    for (const Unknown& each : unknowns_) found.push_back(each.start);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (place[i] == start_[i]) continue;
      const Unknown& of = unknowns_[free_[i]];
      const double share = std::clamp(place[i], 0.0, 1.0);
      found[free_[i]] = share == 1 ? of.high : of.low + share * (of.high - of.low);
    }
    return found;
  }

  const std::vector<Unknown>& unknowns_;
  const Cost& cost_;
  std::vector<std::size_t> free_;
  const SearchLimits& limits_;
  std::vector<double> start_, best_;
  double lowest_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<double> minimise(const std::vector<Unknown>& unknowns, const Cost& cost,
                             const SearchLimits& limits) {
  ensure(!unknowns.empty(), "there is something to vary");
  UnitBox box{unknowns, cost, limits};
  if (box.size() > 1) box.search(nlopt::LN_BOBYQA, first_step);  // needs at least two
  if (box.size() > 0) box.search(nlopt::LN_SBPLX, box.size() > 1 ? second_step : first_step);
  return box.answer();
}

double soft_l1(double residual, double scale) {
  const double scaled = residual / scale;
  return 2 * scale * scale * (std::sqrt(1 + scaled * scaled) - 1);
}

std::vector<double> least_squares(const std::vector<Unknown>& unknowns, const Residuals& residuals,
                                  double scale) {
  ensure(scale > 0, "a fit has a scale");
  return minimise(unknowns, [&](const std::vector<double>& numbers) {
    double sum = 0;
    for (const double each : residuals(numbers)) {
      ensure(std::isfinite(each), "a residual is a number");
      sum += soft_l1(each, scale);
    }
    return sum;
  });
}

}  // namespace orrery::hardware
