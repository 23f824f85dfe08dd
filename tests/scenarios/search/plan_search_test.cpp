#include "scenarios/search/plan_search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "scenarios/search/plan_report.hpp"
#include "scenarios/search/space/block_shapes.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

namespace {

struct Predicted {
  PlacedPlan placed;
  models::Prediction prediction;
};

std::vector<Predicted> brute_force(const PlanQuery& query) {
  std::vector<Predicted> all;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    all.push_back({each, models::predict(question_of(query, each))});
    for (const models::Plan& variant : recomputing_variants(query, each.plan)) {
      const PlacedPlan placed{.plan = variant, .nodes = each.nodes};
      all.push_back({placed, models::predict(question_of(query, placed))});
    }
  }
  return all;
}

std::string report_of(const PlanQuery& query, Objective objective, unsigned threads) {
  const PlanAnswer answer = search_plans(query, objective, {threads, {}});
  const std::vector<RankedPlan> best = compare_best(query, answer, objective, 20);
  return to_json(PlanReport{query, objective, answer, best, "cluster", {}, ""}).dump();
}

}  // namespace

TEST_CASE("The best plan is that of predicting every one", "[heavy]") {
  const PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 1024, Breadth::full);
  std::vector<Predicted> all = brute_force(query);
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  CHECK(answer.considered == static_cast<std::int64_t>(all.size()));
  CHECK(answer.fits() + answer.too_large == answer.considered);
  CHECK(!answer.stopped);

  all.erase(std::remove_if(
                all.begin(), all.end(),
                [](const Predicted& each) { return each.prediction.out_of_memory.has_value(); }),
            all.end());
  std::stable_sort(all.begin(), all.end(), [](const Predicted& a, const Predicted& b) {
    return a.prediction.step < b.prediction.step;
  });
  CHECK(answer.fits() == static_cast<std::int64_t>(all.size()));
  REQUIRE(!answer.fitting.empty());
  CHECK(answer.fitting.front().estimate.step == all.front().prediction.step);
  CHECK(answer.fitting.back().estimate.step == all.back().prediction.step);
  for (std::size_t i = 1; i < answer.fitting.size(); ++i) {
    CHECK(answer.fitting[i - 1].estimate.step <= answer.fitting[i].estimate.step);
  }
}

TEST_CASE("A search that takes the shapes of one on fewer nodes finds the same") {
  BlockShapes shapes;
  const Objective& time = objective_named("time");
  for (const char* cluster : {"dgx-a100-80gb", "dgx-a100-80gb x 2", "dgx-a100-80gb x 4"}) {
    const PlanQuery query = plan_query("gpt2", cluster, 64, 1024, Breadth::reduced);
    const auto found = [&](BlockShapes* kept) {
      const PlanAnswer answer =
          search_plans(query, time, {1, {}}, Wanted{.best = 5, .shapes = kept});
      return to_json(
                 PlanReport{
                     query, time, answer, compare_best(query, answer, time, 5), "cluster", {}, ""})
          .dump();
    };
    INFO(cluster);
    CHECK(found(&shapes) == found(nullptr));
  }
}

TEST_CASE("Plans that take as long and hold as much are shown as one") {
  // Every plan is there once, as itself or among another's equals.
  const PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 1024, Breadth::full);
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  for (std::size_t i = 1; i < answer.fitting.size(); ++i) {
    const models::Estimate& one = answer.fitting[i - 1].estimate;
    const models::Estimate& other = answer.fitting[i].estimate;
    CHECK((one.step != other.step || one.memory != other.memory));
  }
  for (const Candidate& each : answer.fitting) {
    for (const models::Plan& equal : each.equals) {
      const models::Estimate estimate =
          models::estimate(question_of(query, {equal, each.placed.nodes}));
      CHECK(seconds(estimate.step) == Approx(seconds(each.estimate.step)).epsilon(1e-4));
      CHECK(static_cast<double>(estimate.memory.count()) ==
            Approx(static_cast<double>(each.estimate.memory.count())).epsilon(5e-3));
      CHECK(cut_of(equal) == cut_of(each.placed.plan));
    }
  }
}

TEST_CASE("Of plans that take as long the one that recomputes nothing comes first") {
  PlanQuery query = plan_query("llama3-8b", "dgx-h100 x 1", 7, 4096, Breadth::full);
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  REQUIRE(answer.fitting.size() > 1);
  CHECK(answer.fitting.front().placed.plan.recompute.kind == models::Recompute::none);
  for (std::size_t i = 1; i < answer.fitting.size(); ++i) {
    const Candidate &one = answer.fitting[i - 1], &other = answer.fitting[i];
    if (one.estimate.step != other.estimate.step || one.estimate.fit != other.estimate.fit)
      continue;
    CHECK(one.placed.plan.recompute.kind <= other.placed.plan.recompute.kind);
  }
}

TEST_CASE("What recomputes more is never faster, so the best is found without it", "[heavy]") {
  for (const PlanQuery& query : {plan_query("gpt2", "dgx-a100-80gb", 16, 1024, Breadth::full),
                                 plan_query("llama3-8b", "dgx-h100", 16, 8192),
                                 plan_query("gpt3-175b", "dgx-b200 x 8", 64, 2048)}) {
    INFO(query.model.name);
    const std::vector<PlacedPlan> plans = enumerate_plans(query).plans;
    for (std::size_t i = 1; i < plans.size(); ++i) {
      if (plans[i].plan.recompute.kind == models::Recompute::none) continue;
      INFO(models::title_of(plans[i].plan));
      const models::Estimate less = models::estimate(question_of(query, plans[i - 1]));
      const models::Estimate more = models::estimate(question_of(query, plans[i]));
      if (!less.out_of_memory && !more.out_of_memory) CHECK(less.step <= more.step);
    }
    const PlanAnswer all = search_plans(query, objective_named("time"), {2, {}});
    const PlanAnswer least =
        search_plans(query, objective_named("time"), {2, {}}, Wanted{.best = 1});
    REQUIRE(!all.fitting.empty());
    CHECK(least.fitting.front().estimate.step == all.fitting.front().estimate.step);
    CHECK(all.passed_over == 0);
    CHECK(least.passed_over > 0);
    CHECK(least.fits() + least.too_large + least.passed_over == least.considered);
  }
}

TEST_CASE("The answer is the same for any number of threads", "[heavy]") {
  const PlanQuery query = plan_query("gpt2-medium", "dgx-a100-80gb x 2", 32, 1024);
  for (const Objective& objective : objectives()) {
    const std::string one = report_of(query, objective, 1);
    CHECK(report_of(query, objective, 2) == one);
    CHECK(report_of(query, objective, 3) == one);
  }
}

TEST_CASE("Where nothing fits, the nearest miss is that of predicting every plan") {
  // 13 billion parameters hold 13e9 x 18 / 8 bytes = 27 GiB with everything cut by 8.
  PlanQuery query = plan_query("llama2-13b", "dgx-a100-80gb", 8, 2048);
  query.cluster.node.gpu.memory = 20_GiB;
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  CHECK(answer.fitting.empty());
  CHECK(answer.too_large == answer.considered);
  CHECK(answer.too_large_by_sizes > 0);
  Bytes least = 1000_GiB;
  for (const Predicted& each : brute_force(query)) {
    REQUIRE(each.prediction.out_of_memory);
    least = std::min(least, each.prediction.out_of_memory->needed);
  }
  REQUIRE(answer.nearest_miss);
  CHECK(answer.nearest_miss->out_of_memory.needed == least);
  CHECK(answer.nearest_miss->out_of_memory.available == 20_GiB);
}

TEST_CASE("The cheapest plan may take a part of the cluster, the fastest never does") {
  // A small batch on two nodes: half of them does it in less than twice the time.
  const PlanQuery query = plan_query("gpt2", "dgx-a100-80gb x 2", 16, 1024);
  const PlanAnswer cheapest = search_plans(query, objective_named("cost"), {2, {}});
  const PlanAnswer fastest = search_plans(query, objective_named("time"), {2, {}});
  CHECK(cheapest.fitting.front().placed.nodes == 1);
  CHECK(*cheapest.fitting.front().estimate.cost <= *fastest.fitting.front().estimate.cost);
  for (const Candidate& each : fastest.fitting) CHECK(each.placed.nodes == 2);
}

TEST_CASE("A search that is stopped keeps what it has and says so") {
  const PlanQuery query = plan_query("gpt3-175b", "dgx-a100-80gb x 128", 1536, 2048, Breadth::full);
  const PlanAnswer answer = search_plans(query, objective_named("time"),
                                         {1, [](std::size_t, std::size_t) { return false; }});
  CHECK(answer.stopped);
  CHECK(answer.fits() + answer.too_large < answer.considered);
}

TEST_CASE("Traffic that is interrupted leaves all plans their static figures, and says so") {
  const PlanQuery query = plan_query("gpt2", "dgx-a100-80gb x 4", 64, 1024);
  const Objective time = objective_named("time");
  PlanAnswer answer = search_plans(query, time, {1, {}});
  REQUIRE(!answer.stopped);
  REQUIRE(answer.fitting.size() > 100);
  const Time first = answer.fitting.front().estimate.step;
  const Workers interrupted{1, [](std::size_t, std::size_t) { return false; }};
  CHECK(share_links(query, time, answer.fitting.size(), interrupted, answer) ==
        "interrupted before the traffic of all plans shown was simulated");
  CHECK(answer.stopped);
  CHECK(answer.fitting.front().estimate.step == first);
  for (const Candidate& each : answer.fitting) {
    CHECK(!each.shared);
    CHECK(!each.least_shared);
  }
}

TEST_CASE("A search of what no plan can help is refused") {
  PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 4096);
  CHECK_THROWS_WITH(
      search_plans(query, objective_named("time"), {}),
      "/plan/seq_len: seq_len 4096 is longer than the model's 1024 learned positions");
}

TEST_CASE("A plan that fits tightly is never before one that fits well") {
  // A GPU that has 2 % more than the fastest plan needs: that one fits tightly.
  PlanQuery query = plan_query("gpt2-medium", "dgx-a100-80gb", 64, 1024);
  const Bytes needed =
      search_plans(query, objective_named("time"), {2, {}}).fitting.front().estimate.memory;
  query.cluster.node.gpu.memory = Bytes{needed.count() * 102 / 100};
  query.headroom = 0.06;
  for (const Wanted& wanted : {Wanted{}, Wanted{.best = 1}}) {
    const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}}, wanted);
    REQUIRE(answer.fitting.size() > 1);
    CHECK(answer.fitting.front().estimate.fit == models::Fit::yes);
    CHECK(answer.fitting.back().estimate.fit == models::Fit::tight);
    CHECK(answer.tight() > 0);
    CHECK(answer.tight() < answer.fits());
    for (std::size_t i = 1; i < answer.fitting.size(); ++i) {
      CHECK(answer.fitting[i - 1].estimate.fit <= answer.fitting[i].estimate.fit);
    }
  }
  // The one that was fastest would beat the best, and is named.
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  const std::vector<RankedPlan> ahead = tight_ahead(query, answer, objective_named("time"), 3);
  REQUIRE(!ahead.empty());
  CHECK(ahead.size() <= 3);
  CHECK(ahead.front().excess < 0);
  CHECK(ahead.front().candidate.estimate.memory == needed);
  // Asked for, it is the first choice.
  query.headroom = 0;
  const PlanAnswer all = search_plans(query, objective_named("time"), {2, {}});
  CHECK(all.tight() == 0);
  CHECK(all.fitting.front().estimate.memory == needed);
  CHECK(tight_ahead(query, all, objective_named("time"), 3).empty());
}

}  // namespace orrery::scenarios
