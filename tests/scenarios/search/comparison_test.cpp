#include "scenarios/search/comparison.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "models/prediction/error/published_errors.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

namespace {

RankedPlan ranked(std::vector<models::WaterfallPart> parts) {
  RankedPlan plan;
  plan.candidate.estimate.step = 20_s;  // reported in seconds with two decimals
  plan.against_best = std::move(parts);
  return plan;
}

}  // namespace

TEST_CASE("Why a plan loses: the three parts that differ most, those that grow first") {
  CHECK(why(ranked({{"recomputation", 400_ms},
                    {"GEMMs below peak", 10_ms},
                    {"tensor-parallel communication", -300_ms},
                    {"pipeline bubble", 1200_ms}})) ==
        "+1.20 s pipeline bubble, +0.40 s recomputation, -0.30 s tensor-parallel communication");
  // 0.9 % of the largest part says nothing.
  CHECK(why(ranked({{"pipeline bubble", 1000_ms}, {"host", 9_ms}})) == "+1.00 s pipeline bubble");
  CHECK(why(ranked({{"pipeline bubble", Time{}}})).empty());
}

TEST_CASE("The parts in which two plans differ add up to the difference of their steps") {
  const PlanQuery query = plan_query("gpt2-medium", "dgx-a100-80gb x 2", 32, 1024);
  const PlanAnswer answer = search_plans(query, objective_named("time"), {2, {}});
  const std::vector<RankedPlan> best = compare_best(query, answer, objective_named("time"), 8);
  REQUIRE(best.size() == 8);
  for (const RankedPlan& each : best) {
    Time sum{};
    for (const models::WaterfallPart& part : each.against_best) sum += part.time;
    CHECK(sum == each.candidate.estimate.step - best.front().candidate.estimate.step);
    CHECK(each.excess ==
          Approx(ratio(each.candidate.estimate.step, best.front().candidate.estimate.step) - 1));
    const Indistinguishable gaps = indistinguishable(query.software);
    CHECK(each.as_good ==
          (each.excess <= gaps.of(best.front().candidate.placed.plan, each.candidate.placed.plan)));
  }
  CHECK(best.front().excess == 0);
}

TEST_CASE("Plans are compared on links only if both were evaluated there") {
  // Searched: 10 % apart. On links the best takes 1.5 times as long, which says nothing about a
  // plan that was not evaluated there.
  const PlanQuery query = plan_query("gpt2-medium", "dgx-a100-80gb x 2", 32, 1024);
  const Objective& time = objective_named("time");
  PlanAnswer answer = search_plans(query, time, {2, {}});
  answer.fitting.resize(2);
  Candidate& best = answer.fitting[0];
  Candidate& tight = answer.fitting[1];
  best.placed.nodes = tight.placed.nodes = 2;
  tight.estimate.fit = models::Fit::tight;
  tight.estimate.step = scaled(best.estimate.step, 0.9);
  const auto on_links = [&](double slower) {
    SharedStep shared{
        .figures = best.estimate, .contention = {}, .evaluation = {}, .waterfall = {}};
    shared.figures.step = scaled(best.estimate.step, slower);
    return shared;
  };
  best.shared = on_links(1.5);
  const auto excess = [&] {
    const std::vector<RankedPlan> ahead = tight_ahead(query, answer, time, 3);
    return ahead.empty() ? std::nullopt : std::optional{ahead.front().excess};
  };
  CHECK(excess().value() == Approx(-0.1));
  CHECK(compare_best(query, answer, time, 2)[1].excess == Approx(-0.1));
  // On links it takes 1.2 of these 1.5; or longer than the best, and is not ahead.
  tight.shared = on_links(1.2);
  CHECK(excess().value() == Approx(-0.2));
  tight.shared = on_links(1.6);
  CHECK_FALSE(excess());
}

TEST_CASE("On another number of nodes the parts count as GPU time") {
  const PlanQuery query = plan_query("gpt2", "dgx-a100-80gb x 2", 16, 1024);
  const PlanAnswer answer = search_plans(query, objective_named("cost"), {2, {}});
  const std::vector<RankedPlan> best =
      compare_best(query, answer, objective_named("cost"), answer.fitting.size());
  const Candidate& first = best.front().candidate;
  bool other_nodes = false;
  for (const RankedPlan& each : best) {
    Time sum{};
    for (const models::WaterfallPart& part : each.against_best) sum += part.time;
    // Two nodes for as long are twice the GPU time; each of 14 parts is a whole picosecond.
    const double nodes = static_cast<double>(each.candidate.placed.nodes) / first.placed.nodes;
    const Time expected = scaled(each.candidate.estimate.step, nodes) - first.estimate.step;
    CHECK(std::abs((sum - expected).count()) <= 14);
    other_nodes = other_nodes || nodes != 1;
  }
  CHECK(other_nodes);
}

TEST_CASE("What cannot be distinguished is more where nobody has fitted the stack") {
  PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 1024);
  const models::PublishedErrors& record = models::published_errors();
  CHECK(indistinguishable(query.software).alike == record.fitted.gap_of_alike / 100);
  CHECK(indistinguishable(query.software).others == record.fitted.gap_of_others / 100);
  CHECK(words_of_ties(query.software).find("8 of 10 cases") == std::string::npos);
  query.software = models::catalogue_software("generic");
  CHECK(indistinguishable(query.software).alike == record.unfitted.gap_of_alike / 100);
  CHECK(indistinguishable(query.software).others == record.unfitted.mean_regret / 100);
  const models::Evidence generic =
      models::evidence_of(record.ranges, {.kinds = {models::RunKind::dense}, .stack = "generic"});
  CHECK(words_of_ties(query.software)
            .find(fmt::format("{:+.0f} to {:+.0f} % in 8 of 10 cases",
                              100 * std::expm1(-generic.low), 100 * std::expm1(generic.high))) !=
        std::string::npos);
  CHECK(record.unfitted.gap_of_alike > record.fitted.gap_of_alike);
  CHECK(record.unfitted.mean_regret > record.fitted.gap_of_others);
  CHECK(record.unfitted.pairs_in_order < record.fitted.pairs_in_order);
}

TEST_CASE("Plans that cut the model alike share most of what is missed of them") {
  const Indistinguishable gaps{.alike = 0.02, .others = 0.07};
  models::Plan best, plan;
  plan.sharding.zero = models::Zero::one;
  CHECK(gaps.of(best, plan) == 0.02);
  plan.batch.micro = 2;
  CHECK(gaps.of(best, plan) == 0.07);
  CHECK(models::published_errors().fitted.gap_of_alike <
        models::published_errors().fitted.gap_of_others);
}

TEST_CASE("The best of several plans that are predicted alike is expected to take longer") {
  // Two ways to cut, one predicted to take as long: the mean of the larger of two normal errors is
  // Phi^-1(1.625 / 2.25) = 0.589 deviations by Blom's rule.
  PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 1024);
  PlanAnswer answer;
  Candidate one;
  one.placed.plan.tensor = 2;
  one.estimate.step = 10_s;
  answer.fitting.push_back(one);
  const Objective& time = objective_named("time");
  CHECK(expected_of(answer, time).step == 10_s);
  Candidate other = one;
  other.placed.plan.tensor = 4;
  answer.fitting.push_back(other);
  const double spread = models::published_errors().fitted.plan_spread / 100;
  const ExpectedStep two = expected_of(answer, time);
  CHECK(two.rivals == 2);
  CHECK(seconds(two.step) == Approx(10 * std::exp(0.5895 * spread)).epsilon(1e-4));
  // A third that is three deviations slower is no rival.
  other.placed.plan.tensor = 8;
  other.estimate.step = scaled(10_s, 1 + 3 * spread);
  answer.fitting.push_back(other);
  CHECK(expected_of(answer, time).rivals == 2);
}

TEST_CASE("The text of a plan that is searched is the plan") {
  PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", 16, 1024, Breadth::full);
  query.software.runs.zero = {models::Zero::none, models::Zero::one, models::Zero::two,
                              models::Zero::three};
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    const Document document =
        Document::from(models::plan_from_text(models::to_text(each.plan)), "flag");
    std::vector<std::string> assumptions;
    const models::Plan read =
        models::read_plan(document.root(), query.model, query.cluster.gpus(), assumptions);
    CHECK(models::to_json(read) == models::to_json(each.plan));
  }
}

}  // namespace orrery::scenarios
