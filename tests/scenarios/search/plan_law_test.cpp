// The law of a plan search: no legal plan with values of the searched fields is faster, by static
// time, than the one that it finds.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "tests/scenarios/search/lottery.hpp"

namespace orrery::scenarios {
namespace {

using models::Plan;

/// Of so many random legal plans, those that fit well and are faster than the best one.
void check_law(const PlanQuery& query, int draws, unsigned seed) {
  const PlanAnswer answer =
      search_plans(query, objective_named("time"), {2, {}}, Wanted{.best = 1});
  REQUIRE(!answer.fitting.empty());
  const models::Estimate& best = answer.fitting.front().estimate;
  REQUIRE(best.fit == models::Fit::yes);
  Lottery lottery{query, seed};
  int fitted = 0;
  for (int i = 0; i < draws; ++i) {
    const Plan plan = lottery.draw();
    INFO(models::to_text(plan));
    const models::Estimate found =
        models::estimate(question_of(query, {plan, query.cluster.nodes}));
    if (found.fit != models::Fit::yes) continue;
    ++fitted;
    CHECK(best.step <= found.step);
  }
  CHECK(fitted > 0);
}

}  // namespace

TEST_CASE("Of random legal plans none is faster than the one that a search finds") {
  check_law(dense_search(), 40, 1);
  check_law(mixture_search(), 40, 2);
  check_law(adapter_search(), 40, 3);
}

TEST_CASE("Of two thousand random legal plans none is faster than the one that a search finds",
          "[heavy][slow]") {
  check_law(dense_search(), 2000, 4);
  check_law(mixture_search(), 2000, 5);
  check_law(adapter_search(), 2000, 6);
  check_law(search_query("mixtral-8x7b", "dgx-h100 x 4", "megatron-core", 128, 4096), 2000, 7);
}

TEST_CASE("A plan with fixed fields is never faster than the best one", "[heavy]") {
  PlanQuery query = mixture_search();
  query.breadth = Breadth::reduced;
  const auto best = [](const PlanQuery& asked) {
    const PlanAnswer answer =
        search_plans(asked, objective_named("time"), {2, {}}, Wanted{.best = 1});
    REQUIRE(!answer.fitting.empty());
    return answer.fitting.front();
  };
  const Candidate whole = best(query);
  CHECK(whole.placed.plan.experts.dispatcher != models::Dispatcher::all_to_all);
  const auto fixed = [&](const std::vector<std::string>& keys, const Plan& values) {
    PlanQuery asked = query;
    asked.fixed = values;
    asked.stated = keys;
    const Candidate found = best(asked);
    CHECK(found.estimate.step >= whole.estimate.step);
    for (const std::string& key : keys) {
      const models::PlanField& field = models::plan_field(key);
      CHECK(field.json(found.placed.plan) == field.json(values));
    }
  };
  Plan values;
  values.experts.dispatcher = models::Dispatcher::deepep;
  values.experts.overlap = models::ExpertOverlap::micro_batches;
  fixed({"dispatcher", "expert_overlap"}, values);
  values.sharding.zero = models::Zero::one;
  values.tensor = 4;
  fixed({"zero", "tensor"}, values);
  values.batch.micro = 32;  // which a search does not try by itself
  fixed({"micro_batch"}, values);
}

TEST_CASE("A part of the layers recomputes where that is the fastest plan that fits") {
  PlanQuery query = search_query("llama3-8b", "dgx-h100", "megatron-core", 64, 8192);
  query.cluster.node.gpu.memory = 24_GiB;
  query.stated = {"recompute_modules"};
  const Objective& time = objective_named("time");
  const PlanAnswer parts = search_plans(query, time, {2, {}}, Wanted{.best = 1});
  query.stated.emplace_back("recompute_layers");  // at 0: all
  const PlanAnswer all = search_plans(query, time, {2, {}}, Wanted{.best = 1});
  REQUIRE(!parts.fitting.empty());
  REQUIRE(!all.fitting.empty());
  const Candidate& best = parts.fitting.front();
  CHECK(best.placed.plan.recompute.kind == models::Recompute::full);
  CHECK(best.placed.plan.recompute.layers > 0);
  CHECK(best.estimate.fit == models::Fit::yes);
  CHECK(best.estimate.step < all.fitting.front().estimate.step);
  CHECK(all.fitting.front().placed.plan.recompute.layers == 0);
  const auto tried = std::ranges::find(parts.searched, "recompute_layers", &SearchedValues::key);
  REQUIRE(tried != parts.searched.end());
  CHECK(std::ranges::count(tried->values, Json(best.placed.plan.recompute.layers)) == 1);
  CHECK(parts.fits() + parts.too_large + parts.passed_over == parts.considered);
}

TEST_CASE("Layers recompute other modules where that is the fastest plan that fits") {
  PlanQuery query = search_query("llama3-8b", "dgx-h100", "megatron-core", 64, 8192);
  query.cluster.node.gpu.memory = 30_GiB;
  query.stated = {"recompute_layers"};  // at 0: all
  const Objective& time = objective_named("time");
  const PlanAnswer all = search_plans(query, time, {2, {}}, Wanted{.best = 1});
  query.stated = {"recompute_layers", "recompute_modules"};
  const PlanAnswer own = search_plans(query, time, {2, {}}, Wanted{.best = 1});
  REQUIRE(!all.fitting.empty());
  REQUIRE(!own.fitting.empty());
  const Candidate& best = all.fitting.front();
  CHECK(best.placed.plan.recompute.kind == models::Recompute::selective);
  CHECK(best.placed.plan.recompute.modules != Plan{}.recompute.modules);
  CHECK(best.estimate.fit == models::Fit::yes);
  CHECK(best.estimate.step < own.fitting.front().estimate.step);
  const auto tried = std::ranges::find(all.searched, "recompute_modules", &SearchedValues::key);
  REQUIRE(tried != all.searched.end());
  CHECK(std::ranges::count(tried->values,
                           models::plan_field("recompute_modules").json(best.placed.plan)) == 1);
  CHECK(all.fits() + all.too_large + all.passed_over == all.considered);
}

TEST_CASE("A search for the best plans leaves out none that trying every one finds", "[heavy]") {
  PlanQuery query = mixture_search();
  query.breadth = Breadth::reduced;
  query.software.runs.context.clear();
  const Objective& time = objective_named("time");
  const PlanAnswer all = search_plans(query, time, {2, {}});
  const PlanAnswer best = search_plans(query, time, {2, {}}, Wanted{.best = 10});
  CHECK(all.passed_over == 0);
  CHECK(best.passed_over > all.considered / 4);
  CHECK(best.considered == all.considered);
  REQUIRE(best.fitting.size() >= 10);
  for (std::size_t i = 0; i < 10; ++i) {
    INFO(i);
    CHECK(models::to_text(best.fitting[i].placed.plan) ==
          models::to_text(all.fitting[i].placed.plan));
    CHECK(best.fitting[i].equals.size() == all.fitting[i].equals.size());
  }
}

}  // namespace orrery::scenarios
