#include "hardware/gpu/power_rule.hpp"

#include <catch2/catch.hpp>

namespace orrery::hardware {
namespace {

/// Exponent one half, 2 pJ for each FLOP are plenty.
PowerRule rule_of_halves() {
  PowerRule rule;
  rule.silicon = "test";
  rule.exponent = 0.5;
  rule.plentiful = EnergyPerFlop{2};
  rule.cap = 0.95;
  rule.spread = 0.2;
  return rule;
}

const PowerPeer peer{.gpu = "peer", .share = 0.8, .power = EnergyPerFlop{1}};

}  // namespace

TEST_CASE("A quarter of the power for each FLOP leaves half of the share") {
  // sqrt(0.25 / 1) = 0.5 of 0.8.
  CHECK(sustained_share(rule_of_halves(), peer, EnergyPerFlop{0.25}).value() == Approx(0.4));
  CHECK(power_factor(rule_of_halves(), EnergyPerFlop{1}, EnergyPerFlop{0.25}) == Approx(0.5));
}

TEST_CASE("No GPU sustains more than the cap, and one with plenty of power sustains it") {
  // sqrt(1.9) * 0.8 = 1.1.
  CHECK(sustained_share(rule_of_halves(), peer, EnergyPerFlop{1.9}) == 0.95);
  CHECK(sustained_share(rule_of_halves(), std::nullopt, EnergyPerFlop{2}) == 0.95);
  CHECK_FALSE(sustained_share(rule_of_halves(), std::nullopt, EnergyPerFlop{1.9}));
}

TEST_CASE("Power beyond plenty moves nothing") {
  CHECK(power_factor(rule_of_halves(), EnergyPerFlop{4}, EnergyPerFlop{3}) == 1);
  // From 4 pJ to 0.5 the share falls as from 2 to 0.5.
  CHECK(power_factor(rule_of_halves(), EnergyPerFlop{4}, EnergyPerFlop{0.5}) == Approx(0.5));
}

TEST_CASE("The rule is exact at its peer and as wide as stated from a fifth away") {
  CHECK(sustained_spread(rule_of_halves(), peer, EnergyPerFlop{1}) == 0);
  CHECK(sustained_spread(rule_of_halves(), peer, EnergyPerFlop{1.5}) == Approx(0.2));
  CHECK(sustained_spread(rule_of_halves(), std::nullopt, EnergyPerFlop{1}) == Approx(0.2));
}

}  // namespace orrery::hardware
