// Laws of the bounds that a search prunes by: no path is longer than the step that the Program's
// sweep finds, no floor above the memory that it needs.

#include "scenarios/search/step_bound.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "hardware/prices/rental.hpp"
#include "models/model/counts.hpp"
#include "models/prediction/lower_bound.hpp"
#include "scenarios/search/comparison.hpp"
#include "scenarios/search/objective.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/search/lottery.hpp"

namespace orrery::scenarios {
namespace {

using models::Plan;

/// Searches of dense models and mixtures, adapters, FSDP, several stacks and GPUs.
std::vector<PlanQuery> searches() {
  PlanQuery dpo = search_query("llama3-8b", "dgx-h100", "nemo", 32, 4096);
  dpo.fixed.task = models::Task::dpo;
  dpo.stated = {"task"};
  return {dense_search(),
          mixture_search(),
          adapter_search(),
          dpo,
          search_query("gpt3-175b", "dgx-a100-80gb x 16", "megatron-lm", 128, 2048),
          search_query("llama3-8b", "dgx-h100 x 4", "generic", 128, 8192),
          search_query("llama2-7b", "dgx-a100-80gb x 2", "pytorch-fsdp", 64, 4096),
          search_query("deepseek-v2", "dgx-h100 x 4", "megatron-core", 64, 4096),
          search_query("gpt2-xl", "dgx-a100-80gb x 2", "deepspeed", 64, 1024),
          search_query("bert-large", "dgx-a100-80gb", "nvidia-examples", 64, 512),
          search_query("gpt-oss-20b", "dgx-h100 x 2", "megatron-core", 64, 8192),
          search_query("nemotron-h-8b", "dgx-h100 x 2", "nemo", 64, 8192)};
}

/// A schedule other than the usual one, where it can run.
void draw_schedule(Plan& plan, std::mt19937& random) {
  constexpr std::array<const char*, 7> others{"gpipe", "zb-h1",    "zb-h2",    "zb-1p",
                                              "zb-v",  "dualpipe", "dualpipev"};
  if (random() % 2 == 0) return;
  const models::Schedule& row =
      models::builtin_schedules().at(others[random() % std::size(others)]);
  const bool one = row.chunks == models::ChunksPerStage::one;
  if (one != (plan.stages.virtual_stages == 1)) return;
  for (const char* name : others) {
    if (&models::builtin_schedules().at(name) == &row) plan.stages.schedule = name;
  }
}

/// Recomputation and offload of a part of the layers, shards inside a node, weights that are kept.
void draw_savers(Plan& plan, std::mt19937& random) {
  const std::int64_t few = 1 + static_cast<std::int64_t>(random() % 3);
  if (random() % 4 == 0) plan.recompute.layers = few;
  if (random() % 4 == 0) plan.recompute.every = few;
  if (random() % 4 == 0) plan.offload.layers = few;
  if (random() % 4 == 0) plan.offload.state = models::Offload::optimizer;
  if (plan.sharding.zero != models::Zero::three) return;
  if (random() % 4 == 0) plan.offload.state = models::Offload::parameters;
  plan.sharding.reshard = random() % 2 == 0;
  if (plan.data > 2 && plan.data % 2 == 0 && random() % 2 == 0) plan.sharding.ranks = 2;
}

/// Calls check(query, plan, estimate) for random legal plans; returns for how many.
template <class Check>
int for_random_plans(int draws, unsigned seed, Check check) {
  int checked = 0;
  for (const PlanQuery& query : searches()) {
    Lottery lottery{query, seed++};
    std::mt19937 random{seed};
    for (int i = 0; i < draws; ++i) {
      Plan plan = lottery.draw();
      Plan other = plan;
      draw_schedule(other, random);
      draw_savers(other, random);
      models::Question question = question_of(query, {other, query.cluster.nodes});
      question.cluster.node.gpu.memory = 1'000'000_GiB;  // so that every plan is timed
      question.cluster.node.host_memory.reset();
      if (!models::conflicts(question).empty()) question.plan = plan;
      INFO(query.software.name << " " << query.model.name << " " << models::to_text(question.plan));
      const models::Estimate found = models::estimate(question);
      REQUIRE(!found.out_of_memory);
      check(query, question.plan, found);
      ++checked;
    }
  }
  return checked;
}

void check_bounds(int draws, unsigned seed) {
  std::array<int, 8> longest{};
  const int checked = for_random_plans(
      draws, seed, [&](const PlanQuery& query, const Plan& plan, const models::Estimate& found) {
        BlockShape shape{query, {plan, query.cluster.nodes}};
        const StepPaths paths = paths_of(query, plan, shape);
        std::size_t row = 0;
        for (const StepPath& each : step_paths()) {
          INFO(each.name);
          CHECK(with_unexplained(paths.*each.length, query.software) <= found.step);
          longest.at(row++) += paths.*each.length == paths.longest() ? 1 : 0;
        }
        const PlanBound least{.step = with_unexplained(paths.longest(), query.software),
                              .kernels = kernels_of(query, plan, shape),
                              .memory = memory_floor(query, plan, shape)};
        CHECK(least.memory <= found.memory);
        const models::Question asked = question_of(query, {plan, query.cluster.nodes});
        CHECK(least.step <= models::step_without_sharing(asked));
        for (const Objective& objective : objectives()) {
          if (objective.needs_price && !query.cluster.price_per_gpu_hour) continue;
          INFO(objective.name);
          CHECK(objective.bound(query, query.cluster.nodes, least) <= objective.measure(found));
        }
      });
  CHECK(checked > 0);
  // Each is the longest of some plan, but for the work, which the fill contains where it is known.
  for (std::size_t i = 1; i < step_paths().size(); ++i) {
    INFO(step_paths()[i].name);
    CHECK(longest.at(i) > 0);
  }
}

}  // namespace

TEST_CASE("No path of a bound is longer than the sweep of the plan's own Program") {
  check_bounds(30, 1);
}

TEST_CASE("No path of a bound is longer than the sweep, for a hundred thousand plans",
          "[heavy][slow]") {
  check_bounds(8400, 1000);
}

TEST_CASE("The bound of a plan in its usual order is close to its step") {
  // Megatron-LM's 175B: data parallelism and optimizer are what the paths leave out.
  const PlanQuery query =
      search_query("gpt3-175b", "dgx-a100-80gb x 128", "megatron-lm", 1536, 2048);
  Plan plan = first_plan(query);
  plan.tensor = 8;
  plan.sequence_parallel = true;
  plan.pipeline = 8;
  plan.data = 16;
  plan.sharding.zero = models::Zero::one;
  for (const std::int64_t v : {1, 2, 4}) {
    plan.stages.virtual_stages = v;
    plan.stages.schedule = models::default_schedule(v);
    BlockShape shape{query, {plan, 128}};
    const Time step = models::estimate(question_of(query, {plan, 128})).step;
    const Time bound = with_unexplained(paths_of(query, plan, shape).longest(), query.software);
    INFO(v << ": " << ratio(bound, step));
    CHECK(bound <= step);
    CHECK(ratio(bound, step) > 0.92);
  }
}

TEST_CASE("A path that is wrong by one block is longer than some plan's step") {
  // Each mutant bounds another plan than the one whose step it is compared with: the same mistake
  // as a path that counts one micro-batch or one recomputation too many, a pipeline without its
  // bubble's order, or a phase that is not cut.
  struct Mutant {
    const char* name;
    void (*plant)(Plan& plan);
    int caught = 0;
  };
  std::array<Mutant, 5> mutants{{
      {"one micro-batch more",
       [](Plan& plan) { plan.batch.global += plan.batch.micro * plan.data; }},
      {"full recomputation where there is none",
       [](Plan& plan) { plan.recompute.kind = models::Recompute::full; }},
      {"sharded passes that are not cut",
       [](Plan& plan) { plan.sharding.zero = models::Zero::none; }},
      {"the warm-up of GPipe",
       [](Plan& plan) {
         if (plan.stages.schedule == "1f1b") plan.stages.schedule = "gpipe";
       }},
      {"one stage more before the busiest",
       [](Plan& plan) {
         if (plan.pipeline > 1 && plan.stages.layers.empty()) plan.stages.embedding_counts ^= true;
       }},
  }};
  for_random_plans(
      120, 50, [&](const PlanQuery& query, const Plan& plan, const models::Estimate& found) {
        for (Mutant& each : mutants) {
          if (each.caught > 0) continue;
          Plan other = plan;
          each.plant(other);
          if (other.stages.virtual_stages > 1 && other.micro_batches() % other.pipeline != 0)
            continue;
          BlockShape shape{query, {other, query.cluster.nodes}};
          const Time bound =
              with_unexplained(paths_of(query, other, shape).longest(), query.software);
          each.caught += bound > found.step ? 1 : 0;
        }
      });
  for (const Mutant& each : mutants) {
    INFO(each.name);
    CHECK(each.caught > 0);
  }
}

TEST_CASE("Plans of one shape have the blocks of one shape") {
  // What the key leaves out does not change a bound: the shape of another plan of the same key.
  int shared = 0;
  for_random_plans(4, 90, [&](const PlanQuery& query, const Plan& plan, const models::Estimate&) {
    Plan other = plan;
    other.data = plan.data * plan.pipeline;
    other.pipeline = 1;
    other.stages = {};
    other.sharding.zero = models::Zero::none;
    const int nodes = query.cluster.nodes, gpus = query.cluster.node.gpus;
    REQUIRE(shape_key(other, gpus) == shape_key(plan, gpus));
    BlockShape own{query, {plan, nodes}}, of_other{query, {other, nodes}};
    CHECK(paths_of(query, plan, own).longest() == paths_of(query, plan, of_other).longest());
    CHECK(memory_floor(query, plan, own) == memory_floor(query, plan, of_other));
    shared += plan.pipeline > 1 ? 1 : 0;
  });
  CHECK(shared > 0);
}

namespace {

/// What a search for the best plan alone learns from one estimate about plans that only recompute
/// more, or that reduce once a step and have other micro-batches.
void check_joints(int draws, unsigned seed) {
  int shared = 0, busy = 0, close = 0;
  for_random_plans(
      draws, seed, [&](const PlanQuery& query, const Plan& plan, const models::Estimate&) {
        const auto found_of = [&](const Plan& asked) {
          models::Question question = question_of(query, {asked, query.cluster.nodes});
          question.cluster.node.gpu.memory = 1'000'000_GiB;
          question.cluster.node.host_memory.reset();
          std::optional<models::EstimateWithJoints> found;
          if (models::conflicts(question).empty()) found = models::estimate_with_joints(question);
          return found;
        };
        const auto check_bounded = [&](const Plan& asked, const models::EstimateWithJoints& found) {
          BlockShape shape{query, {asked, query.cluster.nodes}};
          const std::vector<Time> begin = before_reductions(query, asked, shape);
          for (std::size_t stage = 0; stage < found.joints.size(); ++stage) {
            const models::JointTimes& joints = found.joints[stage];
            CHECK(with_unexplained(joints.all, query.software) <= found.estimate.step);
            busy += ratio(joints.all, found.estimate.step) > 0.1 ? 1 : 0;
            if (begin.empty() || joints.after_first == Time{}) continue;
            REQUIRE(begin.size() == found.joints.size());
            const Time end = begin[stage] + joints.after_first;
            CHECK(with_unexplained(end, query.software) <= found.estimate.step);
            close += ratio(end, found.estimate.step) > 0.9 ? 1 : 0;
          }
        };
        const auto own = found_of(plan);
        REQUIRE(own);
        check_bounded(plan, *own);
        for (const models::Recompute kind : {models::Recompute::none, models::Recompute::full}) {
          Plan other = plan;
          if (other.recompute.layers == 0 && other.recompute.every == 1)
            other.recompute.kind = kind;
          if (!models::shards_gradients(plan) && plan.batch.micro % 2 == 0) other.batch.micro /= 2;
          const auto found = found_of(other);
          if (!found || models::to_text(other) == models::to_text(plan)) continue;
          REQUIRE(joints_key({other, query.cluster.nodes}) ==
                  joints_key({plan, query.cluster.nodes}));
          CHECK(found->joints == own->joints);
          check_bounded(other, *found);
          ++shared;
        }
        Plan wider = plan;
        wider.sharding.zero =
            plan.sharding.zero == models::Zero::none ? models::Zero::one : models::Zero::none;
        CHECK(joints_key({wider, query.cluster.nodes}) != joints_key({plan, query.cluster.nodes}));
        CHECK(joints_key({plan, query.cluster.nodes + 1}) !=
              joints_key({plan, query.cluster.nodes}));
      });
  CHECK(shared > 40);
  CHECK(busy > 5);
  CHECK(close > 5);
}

}  // namespace

TEST_CASE("Plans with the same joint collectives share the time that these take, a bound of both") {
  check_joints(8, 110);
}

TEST_CASE("Twenty thousand plans share the time of their joint collectives with others",
          "[heavy][slow]") {
  check_joints(1700, 5000);
}

TEST_CASE("The best plan alone is that of a search for all, whatever bounds it learns") {
  for (PlanQuery query : {dense_search(), mixture_search(),
                          search_query("llama3-8b", "dgx-h100 x 16", "generic", 512, 8192)}) {
    query.breadth = Breadth::reduced;
    for (const Objective& objective : objectives()) {
      if (objective.needs_price && !query.cluster.price_per_gpu_hour) continue;
      if (query.cluster.nodes > 2 && objective.name != "time") continue;  // takes seconds
      INFO(query.model.name << " " << objective.name);
      const PlanAnswer all = search_plans(query, objective, {2, {}}, Wanted{.best = 1});
      const PlanAnswer alone =
          search_plans(query, objective, {1, {}}, Wanted{.best = 1, .rivals = false});
      REQUIRE(!all.fitting.empty());
      CHECK(models::to_text(alone.fitting.front().placed.plan) ==
            models::to_text(all.fitting.front().placed.plan));
      CHECK(alone.fits() <= all.fits());
    }
  }
}

TEST_CASE("On more nodes of a type the blocks of a plan are the same") {
  // Four times the nodes and the replicas: what a search finds for the shape on the smaller cluster
  // bounds the plan on the larger one.
  int checked = 0;
  for_random_plans(6, 130, [&](const PlanQuery& query, const Plan& plan, const models::Estimate&) {
    PlanQuery larger = query;
    hardware::set_nodes(larger.cluster, 4 * query.cluster.nodes);
    Plan wide = plan;
    wide.data *= 4;
    wide.batch.global *= 4;
    const int gpus = query.cluster.node.gpus;
    REQUIRE(shape_key(wide, gpus) == shape_key(plan, gpus));
    BlockShape on_larger{larger, {wide, larger.cluster.nodes}};
    BlockShape on_smaller{query, {plan, query.cluster.nodes}};
    const bool longer = wide.sharding.zero != models::Zero::none && plan.replicas() == 1;
    if (longer) return;  // what has no replicas shards nothing
    CHECK(paths_of(larger, wide, on_larger).longest() ==
          paths_of(larger, wide, on_smaller).longest());
    CHECK(memory_floor(larger, wide, on_larger) == memory_floor(larger, wide, on_smaller));
    ++checked;
  });
  CHECK(checked > 30);
}

TEST_CASE("The search's estimate of a plan is its prediction, to the picosecond") {
  int timed = 0;
  for_random_plans(6, 170,
                   [&](const PlanQuery& query, const Plan& plan, const models::Estimate& found) {
                     models::Question question = question_of(query, {plan, query.cluster.nodes});
                     question.cluster.node.gpu.memory = 1'000'000_GiB;  // as it was estimated
                     question.cluster.node.host_memory.reset();
                     const models::Prediction whole = models::predict(question);
                     CHECK(found.step == whole.step);
                     CHECK(found.memory == whole.memory[whole.fullest].total);
                     CHECK(found.tokens_per_second == whole.tokens_per_second);
                     CHECK(found.mfu == whole.mfu);
                     CHECK(found.energy.count() == whole.energy.count());
                     CHECK(found.cost == whole.cost);
                     ++timed;
                   });
  CHECK(timed > 60);
}

namespace {

/// A small model on a few GPUs, with memory that some plans do not fit into.
PlanQuery small_search(std::mt19937& random) {
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  PlanQuery query = plan_query("gpt2", "dgx-a100-80gb", any(8, 12, 16), 128, Breadth::full);
  query.software = models::catalogue_software(any("generic", "megatron-lm", "megatron-core"));
  query.model.layers.resize(any(4, 6, 8));
  query.model.parameters = models::count_parameters(query.model);
  query.cluster.node.gpus = any(2, 4, 8);
  query.cluster.nodes = any(1, 2);
  query.cluster.node.nics = std::min(query.cluster.node.nics, query.cluster.node.gpus);
  query.cluster.node.gpu.memory = Bytes{any(1, 3, 80) * (std::int64_t{1} << 30)};
  query.headroom = any(0.0, 0.04);
  return query;
}

}  // namespace

TEST_CASE("The proven best of 25 small spaces is that of estimating every plan") {
  std::mt19937 random{25};
  int pruned = 0, none = 0;
  for (int space = 0; space < 25; ++space) {
    const PlanQuery query = small_search(random);
    std::map<Extent, std::vector<models::Estimate>> all;
    for (const Extent extent : {Extent::all_nodes, Extent::fewer_nodes}) {
      for (const PlacedPlan& each : enumerate_plans(query, extent).plans) {
        all[extent].push_back(models::estimate(question_of(query, each)));
        for (const Plan& variant : recomputing_variants(query, each.plan)) {
          all[extent].push_back(models::estimate(question_of(query, {variant, each.nodes})));
        }
      }
    }
    for (const Objective& objective : objectives()) {
      INFO(space << " " << objective.name);
      std::optional<double> least;
      for (const models::Estimate& found : all[objective.extent]) {
        if (found.fit != models::Fit::yes) continue;
        least = std::min(least.value_or(objective.measure(found)), objective.measure(found));
      }
      const PlanAnswer answer = search_plans(query, objective, {1, {}}, Wanted{.best = 1});
      const bool fits =
          !answer.fitting.empty() && answer.fitting.front().estimate.fit == models::Fit::yes;
      REQUIRE(fits == least.has_value());
      none += fits ? 0 : 1;
      if (!fits) continue;
      CHECK(objective.measure(answer.fitting.front().estimate) == *least);
      const auto certificate = certificate_of(answer, objective);
      REQUIRE(certificate);
      CHECK(certificate->proven);
      CHECK(certificate->gap == 0);
      CHECK(certificate->bound == *least);
      pruned += answer.passed_over > 0 ? 1 : 0;
    }
  }
  CHECK(pruned > 20);
  CHECK(none > 0);
}

}  // namespace orrery::scenarios
