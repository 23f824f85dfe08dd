// What a search says of a plan that is predicted faster than anything that was published.

#include "scenarios/search/best_of_many.hpp"

#include <catch2/catch.hpp>

#include "scenarios/search/plan_search.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

namespace {

/// A plan of GPT-2 that is predicted to reach this share of the peak, next to a slower one.
std::string said_of(double mfu, const char* gpus) {
  PlanQuery query = plan_query("gpt2", gpus, 16, 1024, Breadth::full);
  const Objective objective = objective_named("time");
  PlanAnswer answer = search_plans(query, objective, {1, {}});
  answer.fitting.resize(1);
  answer.fitting.front().estimate.mfu = mfu;
  const std::vector<RankedPlan> best = compare_best(query, answer, objective, 1);
  return best_of_many(PlanReport{query, objective, answer, best, "cluster", {}, ""}, {});
}

}  // namespace

TEST_CASE("A plan above all published runs of its size and GPU says what they reached, and why") {
  // InternLM-7B's 56.6 % is the most of models below 10 billion parameters on A100 80 GB.
  const auto published = models::published_errors().highest_mfu.at(
      "models of fewer than 10 billion parameters on a100-sxm-80gb in 16 bits");
  CHECK(published.mfu == Approx(0.566).margin(0.002));
  CHECK(published.rows > 300);
  const std::string above = said_of(published.mfu + 0.1, "dgx-a100-80gb");
  CHECK(above.find("InternLM-7B with internevo") != std::string::npos);
  CHECK(above.find("published") != std::string::npos);
  CHECK(said_of(published.mfu - 0.01, "dgx-a100-80gb").find("published") == std::string::npos);
}

TEST_CASE("Where fewer than three such runs were published nothing is said of them") {
  CHECK(said_of(0.9, "l40s-8x").find("published") == std::string::npos);
  CHECK_FALSE(highest_published(plan_query("gpt2", "l40s-8x", 16, 1024, Breadth::full)));
}

}  // namespace orrery::scenarios
