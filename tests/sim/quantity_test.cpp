#include "sim/quantity.hpp"

#include <catch2/catch.hpp>

#include <random>

namespace orrery {
namespace {

TEST_CASE("A transfer ends with its last byte, to the picosecond") {
  CHECK(1_GB / 100_GBps == 10_ms);
  CHECK(64_MiB / 50_GBps == Time{1'342'177'280});
  // 1e21 / 3e9 = 333,333,333,333.3 ps
  CHECK(1_GB / 3_GBps == Time{333'333'333'334});
  CHECK(0_B / 3_GBps == Time{});
  // Half a byte per second is no whole number: 2 s.
  CHECK(1_B / Bandwidth{0.5} == 2_s);
}

TEST_CASE("A whole number of picoseconds at a whole rate is never rounded up") {
  // size = rate * t, where t is a whole number of nanoseconds, divides without remainder.
  std::mt19937_64 random{1};
  for (int i = 0; i < 100'000; ++i) {
    const auto rate = static_cast<std::int64_t>(1 + random() % 900);  // GB/s: bytes per ns
    const auto time = static_cast<std::int64_t>(random() % 1'000'000'000);
    const Bandwidth bandwidth{static_cast<double>(rate) * 1e9};
    REQUIRE(Bytes{rate * time} / bandwidth == Time{time * 1000});
    REQUIRE(Flops{rate * time} / FlopRate{bandwidth.count()} == Time{time * 1000});
  }
}

}  // namespace
}  // namespace orrery
