// A test of the tests: whatever rule is left out of the meaning, the random programs notice.

#include <catch2/catch.hpp>

#include "tests/models/evaluation/operations.hpp"
#include "tests/models/evaluation/random_program.hpp"
#include "tests/models/evaluation/reference.hpp"
#include "tests/slow_build.hpp"

namespace orrery::models {
namespace {

constexpr std::uint64_t programs = 300;

TEST_CASE("The equations, solved by repetition, agree with the evaluations") {
  for (std::uint64_t seed = 0; seed < thinned(programs); ++seed) {
    const Case made = random_program(seed);
    const std::string found =
        difference(evaluate_reference(made.priced), evaluate_events(made.priced));
    INFO("seed " << seed << ": " << found);
    REQUIRE(found.empty());
  }
}

constexpr int enough = 3;

/// How many of the first programs a mutation changes; `enough` are not counted on.
int noticed(Mutation mutation) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < programs && count < enough; ++seed) {
    const Case made = random_program(seed);
    const StepTimes mutated = evaluate_reference(made.priced, mutation);
    if (!difference(mutated, evaluate_operations(made.priced)).empty()) ++count;
  }
  return count;
}

TEST_CASE("Each rule of the meaning matters in several of the first 300 random programs",
          "[heavy]") {
  for (int rule = 1; rule < static_cast<int>(Mutation::last); ++rule) {
    const auto mutation = static_cast<Mutation>(rule);
    INFO("without the rule " << name(mutation));
    CHECK(noticed(mutation) == enough);
  }
}

}  // namespace
}  // namespace orrery::models
