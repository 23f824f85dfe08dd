#include "hardware/fitting/minimise.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "sim/errors.hpp"

using namespace orrery;
using namespace orrery::hardware;

namespace {

constexpr int samples = 20;

/// A line 3 + 2 x through x = 0 ... 19, with what is added to sample 7.
Residuals line(double wild) {
  return [wild](const std::vector<double>& p) {
    std::vector<double> errors;
    for (int x = 0; x < samples; ++x) {
      const double seen = 3 + 2.0 * x + (x == 7 ? wild : 0);
      errors.push_back(p[0] + p[1] * x - seen);
    }
    return errors;
  };
}

}  // namespace

TEST_CASE("A line is found again from its own points") {
  const auto found = least_squares({{0, -10, 10}, {0, -10, 10}}, line(0), 1);
  CHECK(found[0] == Approx(3).epsilon(1e-6));
  CHECK(found[1] == Approx(2).epsilon(1e-6));
}

TEST_CASE("The minimum of a bowl is found, and a number with equal bounds stays") {
  const auto bowl = [](const std::vector<double>& x) {
    return (x[0] - 3) * (x[0] - 3) + 10 * (x[1] + x[2]) * (x[1] + x[2]);
  };
  const auto found = minimise({{0, -9, 9}, {0, -9, 9}, {1, 1, 1}}, bowl);
  CHECK(found[0] == Approx(3).margin(1e-4));
  CHECK(found[1] == Approx(-1).margin(1e-4));
  CHECK(found[2] == 1);
}

TEST_CASE("The same search finds the same bytes") {
  const auto first = least_squares({{0, -10, 10}, {0, -10, 10}}, line(7), 0.1);
  CHECK(first == least_squares({{0, -10, 10}, {0, -10, 10}}, line(7), 0.1));
}

TEST_CASE("One wild point moves a fit by less than a hundredth of its own error") {
  // Plain least squares would put the level 1000 / 20 = 50 off.
  const auto found = least_squares({{0, -10, 10}, {0, -10, 10}}, line(1000), 0.1);
  CHECK(std::abs(found[0] - 3) < 0.1);
  CHECK(std::abs(found[1] - 2) < 0.1);
}

TEST_CASE("A parameter whose best value lies outside its bounds ends on the bound") {
  const auto found = least_squares({{0, -10, 10}, {0, -1, 1}}, line(0), 1);
  CHECK(found[1] == 1);
}

TEST_CASE("An exponential is found from its logarithm's errors") {
  // t = exp(-2 x), from a start a factor of 20 away.
  const Residuals decay = [](const std::vector<double>& p) {
    std::vector<double> errors;
    for (int x = 0; x < samples; ++x) errors.push_back(std::exp(-p[0] * x) - std::exp(-2.0 * x));
    return errors;
  };
  CHECK(least_squares({{0.1, 0, 10}}, decay, 1)[0] == Approx(2).epsilon(1e-5));
}

TEST_CASE("A search without parameters, outside its bounds or of no number is refused") {
  const Residuals none = [](const auto&) { return std::vector<double>{0.0}; };
  const Residuals infinite = [](const auto&) {
    return std::vector<double>{std::numeric_limits<double>::infinity()};
  };
  CHECK_THROWS_AS(least_squares({}, none, 1), ContractError);
  CHECK_THROWS_AS((least_squares({{2, 0, 1}}, none, 1)), ContractError);
  CHECK_THROWS_AS((least_squares({{0, 0, 1}}, infinite, 1)), ContractError);
}
