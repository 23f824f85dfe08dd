// The law of a plan search: no legal plan with values of the searched fields is faster, by static
// time, than the one that it finds.

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "models/plan/fields.hpp"
#include "models/software/runnable.hpp"
#include "scenarios/search/dimensions.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {
namespace {

using models::Plan;

PlanQuery query_of(const std::string& model, const std::string& cluster, const std::string& stack,
                   std::int64_t global_batch, std::int64_t seq_len) {
  PlanQuery query = plan_query(model, cluster, global_batch, seq_len, Breadth::full);
  const Document profile = Document::from(models::software_profile(stack), "profile");
  query.software = models::read_software(profile.root());
  return query;
}

PlanQuery dense() {
  return query_of("llama3-8b", "dgx-h100 x 2", "megatron-core", 64, 8192);
}
PlanQuery mixture() {
  return query_of("qwen3-30b-a3b", "dgx-h100 x 2", "megatron-core", 64, 4096);
}
PlanQuery adapters() {
  PlanQuery query = query_of("llama3-8b", "dgx-h100", "nemo", 32, 4096);
  query.fixed.task = models::Task::lora;
  query.stated = {"task"};
  return query;
}

/// Draws plans from all values that a search lists for a field, in combinations that it does not
/// try, too: ZeRO-3 in a pipeline, any micro-batch, virtual stages that do not divide the layers.
class Lottery {
 public:
  Lottery(const PlanQuery& query, unsigned seed) : query_{query}, random_{seed} {}

  /// A legal plan: neither model nor stack nor schedule forbids it.
  Plan draw() {
    for (;;) {
      models::Question question = question_of(query_, {any(), query_.cluster.nodes});
      take_recipe(query_, question);
      const Plan& plan = question.plan;
      if (!models::not_run(plan, query_.software.runs, "").empty()) continue;
      if (models::conflicts(question).empty()) return plan;
    }
  }

 private:
  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[random_() % values.size()];
  }

  std::int64_t divisor(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> found;
    for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
      if (n % d == 0) found.push_back(d);
    }
    return one_of(found);
  }

  Plan any() {
    Plan plan = first_plan(query_);
    const models::Software& stack = query_.software;
    const std::int64_t gpus = query_.cluster.gpus();
    plan.tensor = divisor(gpus, query_.cluster.node.gpus);
    plan.pipeline = divisor(gpus / plan.tensor, query_.model.layers.size());
    plan.context = divisor(gpus / plan.tensor / plan.pipeline, 4);
    plan.data = gpus / plan.tensor / plan.pipeline / plan.context;
    plan.context_exchange.form = one_of(stack.runs.context);
    plan.sequence_parallel =
        plan.tensor > 1 && (usual_experts(query_.model).count > 0 || random_() % 2 == 0);
    plan.stages.virtual_stages = plan.pipeline > 1 ? 1 + random_() % 8 : 1;
    plan.stages.schedule = models::default_schedule(plan.stages.virtual_stages);
    plan.stages.embedding_counts = stack.embedding_counts && plan.pipeline > 1;
    plan.batch.micro = divisor(std::max<std::int64_t>(1, plan.batch.global / plan.data), 16);
    plan.sharding.zero = plan.replicas() > 1 ? one_of(stack.runs.zero) : models::Zero::none;
    plan.recompute.kind = one_of<models::Recompute>(
        {models::Recompute::none, models::Recompute::selective, models::Recompute::full});
    if (usual_experts(query_.model).count > 0) of_experts(plan);
    return plan;
  }

  void of_experts(Plan& plan) {
    plan.experts.ranks =
        divisor(usual_experts(query_.model).count, plan.tensor * plan.context * plan.data);
    plan.experts.tensor = random_() % 2 == 0 ? 1 : plan.tensor;
    plan.experts.dispatcher = one_of(query_.software.runs.dispatchers);
    std::vector<models::ExpertOverlap> overlaps = query_.software.runs.expert_overlaps;
    overlaps.push_back(models::ExpertOverlap::none);
    plan.experts.overlap = one_of(overlaps);
  }

  const PlanQuery& query_;
  std::mt19937 random_;
};

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
  check_law(dense(), 40, 1);
  check_law(mixture(), 40, 2);
  check_law(adapters(), 40, 3);
}

TEST_CASE("Of two thousand random legal plans none is faster than the one that a search finds",
          "[heavy][slow]") {
  check_law(dense(), 2000, 4);
  check_law(mixture(), 2000, 5);
  check_law(adapters(), 2000, 6);
  check_law(query_of("mixtral-8x7b", "dgx-h100 x 4", "megatron-core", 128, 4096), 2000, 7);
}

TEST_CASE("A step whose tokens reach their experts at once is a bound for all refinements") {
  for (const PlanQuery& query :
       {mixture(), query_of("deepseek-v2", "dgx-h100 x 4", "megatron-core", 64, 4096)}) {
    INFO(query.model.name);
    Lottery lottery{query, 8};
    int several = 0;
    for (int i = 0; i < 15; ++i) {
      const Plan plan = lottery.draw();
      const std::vector<PlacedPlan> all = refinements_of(query, {plan, query.cluster.nodes});
      const models::Estimate first = models::estimate(question_of(query, all.front()));
      several += all.size() > 1 ? 1 : 0;
      for (const PlacedPlan& each : all) {
        INFO(models::to_text(each.plan));
        const models::Estimate found = models::estimate(question_of(query, each));
        CHECK(found.memory == first.memory);
        CHECK(found.step >= first.without_dispatch);
      }
    }
    CHECK(several > 0);
  }
}

TEST_CASE("A plan with fixed fields is never faster than the best one", "[heavy]") {
  PlanQuery query = mixture();
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

TEST_CASE("A search for the best plans leaves out none that trying every one finds", "[heavy]") {
  PlanQuery query = mixture();
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
