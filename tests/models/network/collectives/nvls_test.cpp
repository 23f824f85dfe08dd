#include <catch2/catch.hpp>

#include "models/network/collectives/collective.hpp"
#include "tests/models/network/collectives/clusters.hpp"

using namespace orrery;
using namespace orrery::models;
using namespace orrery::models::testing;

TEST_CASE("The switch reduces at its own rate") {
  // 8 GB on 8 H100: 27 us + 6.7 ns * sqrt(1.75 * 8e9) = 792.8 us, 8e9 / 274e9 = 29 197.1 us.
  const auto result = price(Collective::all_reduce, 8_GB, whole_nodes(1), h100_cluster());
  CHECK(microseconds(result.time) == Approx(27 + 792.75 + 29197.08).epsilon(1e-5));
  CHECK(result.algorithm == "nvls");
  CHECK(result.protocol == Protocol::simple);
}

TEST_CASE("A reduction in the switch takes as long for five ranks as for eight") {
  const auto cluster = h100_cluster();
  CHECK(price(Collective::all_reduce, 8_GB, whole_nodes(1, 5), cluster).time ==
        price(Collective::all_reduce, 8_GB, whole_nodes(1, 8), cluster).time);
}

TEST_CASE("Four ranks and gathers stay on the ring") {
  const auto cluster = h100_cluster();
  CHECK(price(Collective::all_reduce, 8_GB, whole_nodes(1, 4), cluster).algorithm == "ring");
  CHECK(price(Collective::all_gather, 8_GB, whole_nodes(1), cluster).algorithm == "ring");
}

TEST_CASE("Small messages on a switch that reduces stay on the ring") {
  CHECK(price(Collective::all_reduce, 64_KiB, whole_nodes(1), h100_cluster()).algorithm == "ring");
}
