#include "scenarios/fitting/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using Vector = std::vector<double>;

constexpr int most_steps = 100;
constexpr double relative_difference = 1e-5;       // of a parameter, for the Jacobian
constexpr double converged = 1e-9;                 // relative gain of a step that ends the search
constexpr double gentlest = 1e-9, stiffest = 1e9;  // damping

/// Robust cost of residuals, and each one's weight in the next linear problem.
struct Loss {
  double cost = 0;
  Vector weights;
};

Loss loss_of(const Vector& residuals, double scale) {
  Loss loss;
  loss.weights.reserve(residuals.size());
  for (const double r : residuals) {
    ensure(std::isfinite(r), "a residual is a number");
    const double root = std::sqrt(1 + (r / scale) * (r / scale));
    loss.cost += 2 * scale * scale * (root - 1);
    loss.weights.push_back(1 / root);
  }
  return loss;
}

/// Solves a x = b by elimination with pivots; a is square, row by row.
Vector solve(std::vector<Vector> a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    if (a[i][i] == 0) continue;  // nothing depends on it: it stays
    for (std::size_t r = i + 1; r < n; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < n; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  Vector x(n, 0.0);
  for (std::size_t i = n; i-- > 0;) {
    double sum = b[i];
    for (std::size_t c = i + 1; c < n; ++c) sum -= a[i][c] * x[c];
    x[i] = a[i][i] == 0 ? 0 : sum / a[i][i];
  }
  return x;
}

class Descent {
 public:
  Descent(const std::vector<Parameter>& bounds, const Residuals& residuals, double scale)
      : bounds_{bounds}, residuals_{residuals}, scale_{scale} {
    for (const Parameter& one : bounds) {
      ensure(one.low <= one.start && one.start <= one.high, "a search starts inside its bounds");
      at_.push_back(one.start);
    }
    here_ = residuals_(at_);
    loss_ = loss_of(here_, scale_);
  }

  Vector run() {
    double damping = 1e-3;
    for (int step = 0; step < most_steps && damping < stiffest; ++step) {
      linearise();
      while (damping < stiffest) {
        const double before = loss_.cost;
        if (try_step(damping)) {
          damping = std::max(damping * 0.2, gentlest);
          if (before - loss_.cost <= converged * before) return at_;
          break;
        }
        damping *= 5;
      }
    }
    return at_;
  }

 private:
  /// Normal equations of the weighted problem around here.
  void linearise() {
    const std::size_t n = at_.size();
    std::vector<Vector> slopes(n);
    for (std::size_t p = 0; p < n; ++p) {
      Vector moved = at_;
      double difference = relative_difference * std::max(1.0, std::abs(at_[p]));
      if (at_[p] + difference > bounds_[p].high) difference = -difference;
      moved[p] += difference;
      slopes[p] = residuals_(moved);
      for (std::size_t i = 0; i < here_.size(); ++i) {
        slopes[p][i] = (slopes[p][i] - here_[i]) / difference;
      }
    }
    normal_.assign(n, Vector(n, 0.0));
    gradient_.assign(n, 0.0);
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t i = 0; i < here_.size(); ++i) {
        const double weighted = loss_.weights[i] * slopes[p][i];
        gradient_[p] -= weighted * here_[i];
        for (std::size_t q = 0; q <= p; ++q) normal_[p][q] += weighted * slopes[q][i];
      }
      for (std::size_t q = 0; q < p; ++q) normal_[q][p] = normal_[p][q];
    }
  }

  bool try_step(double damping) {
    std::vector<Vector> damped = normal_;
    for (std::size_t p = 0; p < at_.size(); ++p) damped[p][p] *= 1 + damping;
    const Vector step = solve(damped, gradient_);
    Vector moved = at_;
    for (std::size_t p = 0; p < at_.size(); ++p) {
      moved[p] = std::clamp(at_[p] + step[p], bounds_[p].low, bounds_[p].high);
    }
    Vector there = residuals_(moved);
    Loss loss = loss_of(there, scale_);
    if (!(loss.cost < loss_.cost)) return false;
    at_ = std::move(moved);
    here_ = std::move(there);
    loss_ = std::move(loss);
    return true;
  }

  const std::vector<Parameter>& bounds_;
  const Residuals& residuals_;
  double scale_;
  Vector at_, here_, gradient_;
  Loss loss_;
  std::vector<Vector> normal_;
};

}  // namespace

std::vector<double> least_squares(const std::vector<Parameter>& parameters,
                                  const Residuals& residuals, double scale) {
  ensure(!parameters.empty() && scale > 0, "a fit has parameters and a scale");
  return Descent{parameters, residuals, scale}.run();
}

}  // namespace orrery::scenarios
