#include "scenarios/fitting/pattern_search.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace orrery::scenarios {
namespace {

TEST_CASE("A search on a grid ends at the bottom of a bowl, along a ridge too") {
  // (x - 13)^2 + 4 (x + y)^2 is least at (13, -13).
  const GridMinimum found = minimum_on_grid(2, [](const GridPoint& p) {
    const double across = p[0] + p[1];
    return std::optional<double>{(p[0] - 13.0) * (p[0] - 13.0) + 4 * across * across};
  });
  CHECK(found.complete);
  CHECK(found.point == GridPoint{13, -13});
}

TEST_CASE("A search on a grid stays where everything is as good") {
  const GridMinimum found =
      minimum_on_grid(3, [](const GridPoint&) { return std::optional<double>{7}; });
  CHECK(found.point == GridPoint{0, 0, 0});
}

TEST_CASE("A search on a grid does not leave its range") {
  // Downhill without end, forbidden from 5 on.
  const GridMinimum found = minimum_on_grid(1, [](const GridPoint& p) {
    return std::optional<double>{p[0] > 4 ? std::numeric_limits<double>::infinity() : -p[0]};
  });
  CHECK(found.point == GridPoint{4});
}

TEST_CASE("A search on a grid that is told to stop answers with the best so far") {
  int calls = 0;
  const GridMinimum found = minimum_on_grid(1, [&](const GridPoint& p) {
    return ++calls > 2 ? std::nullopt : std::optional<double>{100.0 - p[0]};
  });
  CHECK_FALSE(found.complete);
  CHECK(found.point == GridPoint{16});  // the start, then one stride
}

}  // namespace
}  // namespace orrery::scenarios
