#include <algorithm>
#include <catch2/catch.hpp>

#include "scenarios/question/plan_request.hpp"
#include "tests/models/draft.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {
namespace {

/// Qwen3-30B on B200 by the recipes of Megatron-Bridge.
PlanQuery query_of_recipes() {
  PlanQuery query = plan_query("qwen3-30b-a3b", "dgx-b200 x 1", 512, 4096);
  const Document profile = Document::from(models::software_profile("megatron-bridge"), "profile");
  query.software = models::read_software(profile.root());
  query.precision = models::Precision::mxfp8;
  return query;
}

bool all_fuse(const PlanQuery& query) {
  const PlanSpace space = enumerate_plans(query);
  return !space.plans.empty() &&
         std::all_of(space.plans.begin(), space.plans.end(),
                     [&](const PlacedPlan& each) { return each.plan.experts.permute_fusion; });
}

TEST_CASE("Plans of a search take what recipes fix and the user leaves open") {
  PlanQuery query = query_of_recipes();
  CHECK(all_fuse(query));
  query.model.name = "another";
  CHECK(all_fuse(query));
  query.stated = {"permute_fusion"};
  CHECK_FALSE(all_fuse(query));
  query.stated.clear();
  query.model = models::changed(
      query.model, [](models::ModelDraft& draft) { draft.mlp.width += 128; });  // of no recipe
  query.software.year = 2025;  // before HybridEP was its dispatcher there
  CHECK_FALSE(all_fuse(query));
}

TEST_CASE("What a search varies no recipe decides") {
  const PlanQuery query = query_of_recipes();
  bool recomputes = false, sends = false, plain = false;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    CHECK(models::conflicts(question_of(query, each)).empty());
    recomputes = recomputes || each.plan.recompute.kind == models::Recompute::full;
    // The recipe's dispatcher is hybridep; a search tries what the stack has.
    if (each.plan.experts.ranks == 1) continue;
    const bool by_all_to_all = each.plan.experts.dispatcher == models::Dispatcher::all_to_all;
    plain = plain || by_all_to_all;
    sends = sends || !by_all_to_all;
  }
  CHECK(recomputes);
  CHECK(sends);
  CHECK(plain);
}

TEST_CASE("A search says what its best plan took from recipes") {
  PlanRequest request;
  request.model = "qwen3-30b-a3b";
  request.cluster = "dgx-b200 x 1";
  request.software = "megatron-bridge";
  request.precision = "mxfp8";
  request.global_batch = 64;
  request.seq_len = 4096;
  request.network = models::NetworkMode::fixed;
  const auto says = [&](const std::string& words) {
    const PlanSearch found = search(request, {});
    return std::any_of(
        found.assumptions.begin(), found.assumptions.end(),
        [&](const std::string& each) { return each.find(words) != std::string::npos; });
  };
  const std::string words =
      "best plan: /plan/permute_fusion: not stated; true assumed, from the recipes of "
      "megatron-bridge";
  CHECK(says(words));
  request.fixed = "permute_fusion=false";
  CHECK_FALSE(says(words));
}

}  // namespace
}  // namespace orrery::scenarios
