#include "scenarios/scenario/stack_defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/conflicts.hpp"
#include "models/plan/fields.hpp"
#include "models/prediction/prediction.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

models::Question asked_of(const std::string& software, const Json& plan,
                          const std::string& model = "llama3-8b",
                          const std::string& cluster = "dgx-h100 x 2") {
  const Json scenario{
      {"model", model}, {"cluster", cluster}, {"software", software}, {"plan", plan}};
  return Scenario::parse(scenario, "mine.json").question();
}

/// Why a plan is refused; empty if it is not.
std::string refuses(const std::string& stack, const Json& plan) {
  try {
    const std::vector<models::Conflict> found = models::conflicts(asked_of(stack, plan));
    return found.empty() ? "" : found.front().problem;
  } catch (const InputError& error) {
    return error.what();
  }
}

bool assumes(const models::Question& question, const std::string& text) {
  return std::ranges::count(question.assumptions, text) == 1;
}

}  // namespace

TEST_CASE("Stacks that shard do so unless the plan says otherwise, and where there are replicas") {
  for (const char* stack : {"torchtitan", "pytorch-fsdp", "composer-fsdp", "fms", "maxtext"}) {
    INFO(stack);
    const models::Question sharded = asked_of(stack, Json::object());
    CHECK(sharded.plan.sharding.zero == models::Zero::three);
    CHECK(assumes(sharded, fmt::format("/plan/zero: not stated; 3 assumed, {}'s default", stack)));
    CHECK(asked_of(stack, {{"zero", 0}}).plan.sharding.zero == models::Zero::none);
  }
  CHECK(asked_of("megatron-core", Json::object()).plan.sharding.zero == models::Zero::one);
  CHECK(asked_of("torchtitan", {{"tensor", 8}, {"pipeline", 2}}).plan.sharding.zero ==
        models::Zero::none);
}

TEST_CASE("No plan is refused for what its stack does by default") {
  const Json plans[] = {Json::object(),
                        {{"tensor", 8}},
                        {{"pipeline", 2}},
                        {{"tensor", 4}, {"pipeline", 4}},
                        {{"pipeline", 4}, {"global_batch", 20}},
                        {{"context", 2}},
                        {{"offload_layers", 2}},
                        {{"task", "lora"}},
                        {{"micro_batch", 2}, {"recompute", "full"}}};
  for (const std::string& stack : models::software_names()) {
    for (const Json& plan : plans) {
      INFO(stack << " " << plan);
      Json without = plan;  // each default stated as no stack has it
      for (const char* key : {"sequence", "zero", "virtual_stages"}) {
        if (!without.contains(key)) without[key] = models::plan_field(key).json(models::Plan{});
      }
      if (refuses(stack, without).empty()) CHECK(refuses(stack, plan).empty());
    }
  }
}

TEST_CASE("A stack's default that conflicts with the plan is named, unless it concerns no part") {
  const std::string field = "/plan/expert_gemms: not stated; ";
  const auto notes = [&](const Json& plan, const std::string& model) {
    const models::Question question = asked_of("huggingface", plan, model);
    std::vector<std::string> found;
    std::ranges::copy_if(question.assumptions, std::back_inserter(found),
                         [&](const std::string& each) { return each.starts_with(field); });
    return found;
  };
  using Notes = std::vector<std::string>;
  CHECK(notes(Json::object(), "mixtral-8x7b") ==
        Notes{field + "loop assumed, huggingface's default"});
  CHECK(notes({{"expert", 8}}, "mixtral-8x7b") ==
        Notes{field +
              "huggingface's default loop is not taken: loop is simulated with expert 1 and "
              "expert_tensor 1, where a rank has all experts"});
  CHECK(notes(Json::object(), "llama3-8b").empty());
}

TEST_CASE("A plan that is printed asks the same question of the same stack") {
  for (const char* stack : {"torchtitan", "megatron-core"}) {
    for (const Json& plan : {Json{{"zero", 0}}, Json{{"tensor", 8}, {"sequence", false}}}) {
      const models::Question question = asked_of(stack, plan);
      const Json again = models::plan_from_text(models::to_text(question.plan));
      CHECK(models::to_json(asked_of(stack, again).plan) == models::to_json(question.plan));
    }
  }
}

TEST_CASE("A stack's chunks are about as long as usual, and none where micro-batches do not fit") {
  models::Plan plan;
  plan.pipeline = 6;
  plan.batch.global = 12;
  const models::Model model = models::tiny_gpt(96);  // 16 on each stage
  CHECK(usual_virtual_stages(plan, model, 6) == 2);
  CHECK(usual_virtual_stages(plan, model, 4) == 4);
  CHECK(usual_virtual_stages(plan, model, 0) == 1);
  plan.batch.global = 8;
  CHECK(usual_virtual_stages(plan, model, 4) == 1);
}

TEST_CASE("A plan that nobody stated may not fit, one that is stated does not") {
  models::Question asked = asked_of("generic", {{"micro_batch", 1}}, "llama3-70b");
  CHECK_FALSE(asked.plan_is_assumed);
  // Below the least that the plan may need, down to where one peak in twenty would fit.
  const models::Prediction whole = models::predict(asked);
  const Bytes least = whole.memory[whole.fullest].need.least;
  models::Prediction small;
  std::int64_t share = 100;
  do {
    asked.cluster.node.gpu.memory = Bytes{least.count() / 100 * --share};
    small = models::predict(asked);
  } while (small.fit_probability > 0.05);
  CHECK(small.fit_probability > 0.001);
  CHECK(small.fit == models::Fit::no);
  asked.plan_is_assumed = true;
  CHECK(models::predict(asked).fit == models::Fit::doubtful);
  // Weights alone that are larger than the memory fit by no plan of such a cut.
  const models::Question far = asked_of("generic", Json::object(), "llama3.1-405b");
  CHECK(far.plan_is_assumed);
  CHECK(models::predict(far).fit == models::Fit::no);
}

TEST_CASE(
    "A model with attention sinks is not trained unfused because a stack has FlashAttention") {
  const models::Question question = asked_of("generic", Json::object(), "gpt-oss-20b");
  CHECK(question.plan.kernels.attention == models::AttentionKernel::cudnn);
  const models::Question own = asked_of("generic", {{"attention", "unfused"}}, "gpt-oss-20b");
  CHECK(own.plan.kernels.attention == models::AttentionKernel::unfused);
  CHECK(asked_of("generic", Json::object()).plan.kernels.attention ==
        models::AttentionKernel::of_stack);
}

TEST_CASE("The attention kernel that a stack takes is among the assumptions") {
  const auto note = [](const std::string& stack, const std::string& cluster) {
    const models::Prediction found =
        models::predict(asked_of(stack, Json::object(), "gpt2", cluster));
    const auto at = std::ranges::find_if(found.assumptions, [](const std::string& each) {
      return each.starts_with("/plan/attention:");
    });
    return at == found.assumptions.end() ? std::string{} : *at;
  };
  CHECK(note("megatron-lm", "dgx-a100-80gb x 1") ==
        "/plan/attention: not stated; unfused assumed, as megatron-lm runs on ampere");
  CHECK(note("generic", "mi300x-8x x 1") ==
        "/plan/attention: not stated; flash-2 assumed, as generic runs on cdna3");
}

}  // namespace orrery::scenarios
