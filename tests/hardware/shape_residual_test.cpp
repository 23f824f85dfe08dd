#include "hardware/curves/shape_residual.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "sim/errors.hpp"

using namespace orrery;
using namespace orrery::hardware;

TEST_CASE("A residual without samples changes nothing") {
  CHECK(ShapeResidual{}.log_ratio({1024, 1024, 1024}) == 0);
}

TEST_CASE("Half way between two samples the residual is their mean") {
  // m = 512 and m = 2048 are an octave from m = 1024 each: equal weights, (0.1 + 0.3) / 2.
  const ShapeResidual residual{{{{512, 64, 64}, 0.1}, {{2048, 64, 64}, 0.3}}};
  CHECK(residual.log_ratio({1024, 64, 64}) == Approx(0.2).epsilon(1e-12));
}

TEST_CASE("On the spot of a sample it rules its neighbours") {
  // Distances 0 and 2: weights 1 / 0.05^2 = 400 and 1 / 2.05^2 = 0.23795.
  const ShapeResidual residual{{{{512, 64, 64}, 0.1}, {{2048, 64, 64}, 0.3}}};
  const double expected = (400 * 0.1 + 0.3 / (2.05 * 2.05)) / (400 + 1 / (2.05 * 2.05));
  CHECK(residual.log_ratio({512, 64, 64}) == Approx(expected).epsilon(1e-12));
}

TEST_CASE("Only the eight nearest samples count") {
  // Eight samples of 0.1 within 3 octaves, two of 9 at 20: they would pull the mean to above 0.1.
  std::vector<ShapeResidual::ResidualSample> samples;
  for (const std::int64_t m : {1, 2, 4, 8}) {
    samples.push_back({{m, 1, 1}, 0.1});
    samples.push_back({{m, 2, 1}, 0.1});
  }
  samples.push_back({{1 << 20, 1, 1}, 9});
  samples.push_back({{1 << 20, 2, 1}, 9});
  CHECK(ShapeResidual{samples}.log_ratio({1, 1, 1}) == Approx(0.1).epsilon(1e-12));
}

TEST_CASE("Outside its samples a residual stays between the measured ones") {
  const ShapeResidual residual{{{{512, 64, 64}, 0.1}, {{2048, 128, 64}, 0.3}}};
  const double far = residual.log_ratio({1 << 24, 1 << 24, 64});
  CHECK(far > 0.1);
  CHECK(far < 0.3);
}

TEST_CASE("A GEMM without one of its dimensions has no residual") {
  CHECK_THROWS_AS((ShapeResidual{{{{0, 1, 1}, 0.0}}}), ContractError);
}
