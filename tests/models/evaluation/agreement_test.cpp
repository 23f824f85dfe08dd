// One meaning, evaluated three ways, and folded or not: all agree to the picosecond.

#include <catch2/catch.hpp>

#include <optional>
#include <utility>

#include "sim/errors.hpp"
#include "tests/models/evaluation/operations.hpp"
#include "tests/models/evaluation/random_program.hpp"
#include "tests/slow_build.hpp"

namespace orrery::models {
namespace {

/// Every second one with ranks that share a sequence, and copies of what is sharded.
Case drawn(std::uint64_t seed) {
  return random_program(seed, seed % 2 == 0 ? 1 : 3);
}

void require_agreement(std::uint64_t first, std::uint64_t seeds,
                       Case (*make)(std::uint64_t) = drawn) {
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Case made = make(seed);
    const StepTimes events = evaluate_events(made.priced);
    const std::string operations = difference(events, evaluate_operations(made.priced));
    const std::string maps = difference(events, evaluate_maps(made.priced));
    INFO("seed " << seed << "\nevents and operations: " << operations
                 << "\nevents and maps: " << maps);
    REQUIRE((operations.empty() && maps.empty()));
  }
}

void require_exact_folding(std::uint64_t first, std::uint64_t seeds,
                           Case (*make)(std::uint64_t) = drawn) {
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Case made = make(seed);
    const Mesh& mesh = made.program->mesh;
    const StepTimes folded = unfolded(evaluate_operations(made.priced), mesh.stage_ranks());
    const std::string found = difference(evaluate_all_ranks(made.priced), folded);
    INFO("seed " << seed << ": " << found);
    REQUIRE(found.empty());
  }
}

TEST_CASE("Maps, operations and events agree to the picosecond on 3,000 random programs") {
  require_agreement(0, thinned(3000));
}

TEST_CASE("Maps, operations and events agree on 30,000 more random programs", "[slow]") {
  require_agreement(1'000'000, 30'000);
}

std::optional<StepTimes> answer(StepTimes (*evaluation)(const PricedProgram&),
                                const PricedProgram& priced) {
  try {
    return evaluation(priced);
  } catch (const ContractError&) {
    return std::nullopt;
  }
}

TEST_CASE("A list out of order means the same to all, or is refused") {
  // A sweep refuses more: it does not pass a receive whose send is after it in the order of the
  // lists, even where nothing that was received is needed for that send.
  int refused = 0, answered = 0;
  for (std::uint64_t seed = 0; seed < thinned(600); ++seed) {
    const Case made = random_program(seed);
    for (RankClass& ranks : made.program->classes) {
      std::vector<Instruction>& list = ranks.instructions;
      if (list.size() < 2 || seed % 2 != static_cast<std::uint64_t>(ranks.stage) % 2) continue;
      std::swap(list[seed % list.size()], list[(seed * 7 + 3) % list.size()]);
    }
    const std::optional<StepTimes> sweep = answer(evaluate_operations, made.priced);
    const std::optional<StepTimes> maps = answer(evaluate_maps, made.priced);
    const std::optional<StepTimes> events = answer(evaluate_events, made.priced);
    INFO("seed " << seed);
    REQUIRE(sweep.has_value() == maps.has_value());
    REQUIRE((events || !sweep));
    if (sweep) REQUIRE((difference(*sweep, *events) + difference(*maps, *events)).empty());
    if (sweep) ++answered;
    if (!events) ++refused;
  }
  CHECK(refused > (slow_build ? 5 : 50));
  CHECK(answered > (slow_build ? 5 : 50));
}

TEST_CASE("Every rank of the mesh on its own does just what its class does") {
  require_exact_folding(2'000'000, 300);
}

TEST_CASE("Groups of experts mean the same to all evaluations, folded or not") {
  require_agreement(4'000'000, thinned(500), random_program_with_experts);
  require_exact_folding(4'000'000, 200, random_program_with_experts);
}

TEST_CASE("Folding is exact on 5,000 more random programs", "[slow]") {
  require_exact_folding(3'000'000, 5000);
}

}  // namespace
}  // namespace orrery::models
