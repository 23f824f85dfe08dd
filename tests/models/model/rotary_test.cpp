#include "models/model/rotary.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace orrery::models {
namespace {

TEST_CASE("Pairs turn slower and slower, down to the base") {
  const std::vector<double> of = rotary_frequencies({.base = 10000}, 8);
  REQUIRE(of.size() == 4);
  CHECK(of[0] == 1);
  CHECK(of[1] == Approx(0.1));
  CHECK(of[3] == Approx(1e-3));
  CHECK(rotary_frequencies({.base = 500000}, 8)[2] == Approx(1 / std::sqrt(500000.0)));
}

TEST_CASE("A share of the columns has pairs of its own") {
  const std::vector<double> of = rotary_frequencies({.share = 0.25}, 64);
  REQUIRE(of.size() == 8);
  CHECK(of[4] == Approx(0.01));
}

TEST_CASE("Linear scaling divides all, Llama 3.1's the slow ones alone") {
  Rotary rotary{.base = 10000, .scaling = RotaryScaling::linear, .factor = 4};
  CHECK(rotary_frequencies(rotary, 8)[0] == 0.25);
  rotary = {.base = 10000,
            .scaling = RotaryScaling::llama3,
            .factor = 8,
            .low_turns = 1,
            .high_turns = 4,
            .original_positions = 1000};
  const std::vector<double> of = rotary_frequencies(rotary, 8);
  CHECK(of[0] == 1);                                         // 159 turns in 1,000 positions
  CHECK(of[1] == Approx(0.1));                               // 16
  CHECK(of[3] == Approx(1e-3 / 8));                          // 0.16
  const double turns = 1000 * 0.01 / (2 * std::acos(-1.0));  // 1.59
  const double kept = (turns - 1) / 3;
  CHECK(of[2] == Approx((1 - kept) * 0.01 / 8 + kept * 0.01));
}

// 4 pairs of base 10,000 turn 159.2, 15.9, 1.59 and 0.16 times in 1,000 positions. The pair that
// would turn t times is 4 log(1000 / 2 pi t) / log(10,000): 1.5 turns pair 2.03, 10 turns 1.20.
TEST_CASE("YaRN leaves the pairs that turn often, slows those that turn seldom, the rest between") {
  Rotary rotary{.base = 10000,
                .scaling = RotaryScaling::yarn,
                .factor = 8,
                .low_turns = 1.5,
                .high_turns = 10,
                .original_positions = 1000};
  std::vector<double> of = rotary_frequencies(rotary, 8);  // from pair 1 to pair 3
  CHECK(of[0] == 1);
  CHECK(of[1] == Approx(0.1));
  CHECK(of[2] == Approx(0.01 * (0.5 / 8 + 0.5)));
  CHECK(of[3] == Approx(1e-3 / 8));
  rotary.whole_pairs = false;
  of = rotary_frequencies(rotary, 8);
  const double first = std::log10(1000 / (20 * std::acos(-1.0)));
  const double last = std::log10(1000 / (3 * std::acos(-1.0)));
  const double slowed = (2 - first) / (last - first);
  CHECK(of[1] == Approx(0.1));
  CHECK(of[2] == Approx(0.01 * (slowed / 8 + 1 - slowed)));
}

TEST_CASE("Where both bounds are one, pairs are slowed or left, as Llama 4 Scout states it") {
  const Rotary rotary{.base = 10000,
                      .scaling = RotaryScaling::llama3,
                      .factor = 16,
                      .low_turns = 1,
                      .high_turns = 1,
                      .original_positions = 1000};
  const std::vector<double> of = rotary_frequencies(rotary, 8);
  CHECK(of[2] == Approx(0.01));       // 1.59 turns in 1,000 positions
  CHECK(of[3] == Approx(1e-3 / 16));  // 0.16
}

}  // namespace
}  // namespace orrery::models
