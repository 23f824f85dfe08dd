#include "scenarios/search/over_stacks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "models/software/resolved_profile.hpp"
#include "tests/scenarios/command.hpp"
#include "tests/scenarios/search/lottery.hpp"

namespace orrery::scenarios {

namespace {

/// By how much a plan is slower than the fastest, on the stack that runs it where that is most.
double worst_excess_pct(const Json& stacks, int plan) {
  double worst = 0;
  for (const Json& stack : stacks) {
    double least = std::numeric_limits<double>::infinity(), own = 0;
    for (const Json& each : stack["plans"]) {
      const double step = each["static_step_time_s"];
      least = std::min(least, step);
      if (each["plan"] == plan) own = step;
    }
    worst = std::max(worst, 100 * (own / least - 1));
  }
  return worst;
}

}  // namespace

TEST_CASE("Plans on other stacks have the estimates of a search with that stack named") {
  const PlanQuery query = search_query("llama3-8b", "dgx-h100 x 2", "generic", 64, 8192);
  const Objective& time = objective_named("time");
  const PlanAnswer answer = search_plans(query, time, {2, {}}, Wanted{.best = 6});
  const std::vector<RankedPlan> best = compare_best(query, answer, time, 6);
  REQUIRE(best.size() == 6);
  const OverStacks found = over_stacks(query, time, best, {2, {}});
  REQUIRE(found.stacks.size() > 3);
  std::size_t lacking = 0;
  for (const PlansOnStack& each : found.stacks) {
    INFO(each.software);
    const PlanQuery named = search_query("llama3-8b", "dgx-h100 x 2", each.software, 64, 8192);
    CHECK(models::is_fitted(named.software));
    for (std::size_t i = 0; i < best.size(); ++i) {
      const PlacedPlan& placed = best[i].candidate.placed;
      const bool runs = models::not_run(placed.plan, named.software.runs, "").empty();
      lacking += each.estimates[i] ? 0 : 1;
      if (!runs) CHECK(!each.estimates[i]);
      if (!each.estimates[i]) continue;
      CHECK(each.estimates[i]->step == models::estimate(question_of(named, placed)).step);
      CHECK(each.estimates[each.best]->step <= each.estimates[i]->step);
    }
  }
  CHECK(lacking > 0);  // no ZeRO-2 in some
}

TEST_CASE("The safest plan runs on most stacks and loses least on the worst of them") {
  const PlanQuery query = search_query("llama3-8b", "dgx-h100 x 2", "generic", 64, 8192);
  const Objective& time = objective_named("time");
  const PlanAnswer answer = search_plans(query, time, {2, {}}, Wanted{.best = 6});
  const std::vector<RankedPlan> best = compare_best(query, answer, time, 6);
  const OverStacks found = over_stacks(query, time, best, {1, {}});
  REQUIRE(found.worst.size() == best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    CHECK(found.runs(i) <= found.runs(found.robust));
    if (found.runs(i) == found.runs(found.robust)) {
      CHECK(found.worst[i] >= found.worst[found.robust]);
    }
    double worst = 0;
    for (const PlansOnStack& each : found.stacks) {
      if (!each.estimates[i]) continue;
      const Time least = each.estimates[each.best]->step;
      worst = std::max(worst, ratio(each.estimates[i]->step, least) - 1);
    }
    CHECK(found.worst[i] == Approx(worst).margin(1e-12));
  }
  for (const PlansOnStack& each : found.stacks) {
    INFO(each.software);
    REQUIRE(each.best < best.size());
    CHECK(each.estimates[each.best]);
  }
  CHECK(over_stacks(query, time, {}, {1, {}}).empty());
}

TEST_CASE("orrery plan compares its plans on other stacks where none is named") {
  const std::string call =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 64 --seq-len 1024 --top 4 ";
  const Json json = parsed(orrery(call + "--json").out);
  const Json& found = json["over_stacks"];
  REQUIRE(found["stacks"].size() > 3);
  for (const Json& each : found["stacks"]) {
    CHECK(each["best_plan"] >= 1);
    CHECK(each["best_plan"] <= json["plans"].size());
    REQUIRE(!each["plans"].empty());
  }
  CHECK(found["robust_worst_excess_pct"].get<double>() ==
        Approx(worst_excess_pct(found["stacks"], found["robust_plan"])).margin(1e-9));
  CHECK(found["first_worst_excess_pct"].get<double>() ==
        Approx(worst_excess_pct(found["stacks"], 1)).margin(1e-9));
  CHECK(found["first_worst_excess_pct"] > 0);  // else any plan would do everywhere
  CHECK_THAT(orrery(call).out, Catch::Contains("No stack was named. Plans 1 to 4 on the ") &&
                                   Catch::Contains(" is the safest: it runs on "));
  const std::string named = call + "--software megatron-core ";
  CHECK(parsed(orrery(named + "--json").out)["over_stacks"].is_null());
  CHECK_THAT(orrery(named).out, !Catch::Contains("is the safest"));
}

TEST_CASE("orrery plan says where an excluded value has no effect") {
  const std::string call =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 64 --seq-len 1024 --software "
      "megatron-core --top 1 --json --exclude ";
  const auto said = [](const Json& json) {
    return std::ranges::count_if(json["assumptions"], [](const Json& each) {
      return each ==
             "--exclude attention=unfused has no effect: this search does not vary "
             "attention";
    });
  };
  CHECK(said(parsed(orrery(call + "attention=unfused").out)) == 1);
  CHECK(said(parsed(orrery(call + "zero=0,tensor=2").out)) == 0);
}

TEST_CASE("orrery plan leaves out a set of recomputed modules, but not the usual one") {
  const std::string call =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 64 --seq-len 1024 --software "
      "megatron-core --top 1 --json --exclude recompute_modules=";
  const Json found = parsed(orrery(call + "layernorm:mlp").out);
  CHECK(found["fits"] == true);
  for (const Json& each : found["searched"]["recompute_modules"]) {
    CHECK(each != Json::array({"layernorm", "mlp"}));
  }
  CHECK(orrery(call + "core_attn").exit_code == 2);
  CHECK_THAT(orrery(call + "core_attn").error,
             Catch::Contains("--exclude: recompute_modules=core_attn is what recompute=selective "
                             "has by itself; exclude recompute=selective, or fix the modules"));
}

}  // namespace orrery::scenarios
