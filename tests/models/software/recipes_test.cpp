#include <algorithm>
#include <catch2/catch.hpp>

#include "models/software/recipes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Json recipe_choice(const RecipeQuestion& asked, const std::string& key) {
  for (const RecipeChoice& each : recipe_of(asked)) {
    if (each.key == key) return each.value;
  }
  return nullptr;
}

TEST_CASE("A recipe decides by stack, task and sizes, not by a model's name") {
  Model model = catalogue_model("llama2-70b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h200 x 1");
  RecipeQuestion asked{
      .stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu(), .task = Task::lora};
  CHECK(recipe_choice(asked, "lora_rank") == 16);
  CHECK(recipe_choice(asked, "lora_dropout") == true);
  CHECK(recipe_choice(asked, "sequence_lengths").is_null());
  CHECK(recipe_choice(asked, "low_precision_gather").is_null());
  asked.precision = Precision::fp8;
  CHECK(recipe_choice(asked, "low_precision_gather") == true);
  asked.precision = Plan{}.precision;
  const std::size_t choices = recipe_of(asked).size();
  model.name = "another";
  CHECK(recipe_of(asked).size() == choices);
  asked.task = Task::pretrain;
  CHECK(recipe_choice(asked, "lora_rank").is_null());
  asked.task = Task::lora;
  asked.stack = "nemo";
  CHECK(recipe_choice(asked, "lora_rank") == 16);
  model.hidden = 4096;
  CHECK(recipe_choice(asked, "lora_rank") == 8);
}

TEST_CASE("What a stack runs again goes with the kind of recomputation that a plan names") {
  const Model model = catalogue_model("llama3-8b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 1");
  RecipeQuestion asked{.stack = "torchtitan", .model = model, .gpu = cluster.gpu()};
  CHECK(recipe_choice(asked, "recompute_every").is_null());
  asked.recompute = Recompute::selective;
  CHECK(recipe_choice(asked, "recompute_every") == 2);
  asked.recompute = Recompute::full;
  CHECK(recipe_choice(asked, "recompute_every").is_null());
}

TEST_CASE("What a plan states stays, what it leaves open is taken with its source") {
  const Model model = catalogue_model("llama2-70b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h200 x 1");
  const RecipeQuestion asked{
      .stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu(), .task = Task::lora};
  Plan plan;
  plan.lora_rank = 64;
  const auto taken = take_recipe(
      asked, [](std::string_view key) { return key == "lora_rank"; }, plan);
  CHECK(plan.lora_rank == 64);
  CHECK(plan.lora_dropout);
  REQUIRE_FALSE(taken.empty());
  CHECK(assumption_of(taken.front(), "nemo-mlperf").rfind("/plan/lora_targets: ", 0) == 0);
}

}  // namespace
}  // namespace orrery::models
