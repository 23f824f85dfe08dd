#include "scenarios/scenario/stack_recipe.hpp"

#include <algorithm>

#include "models/plan/conflicts.hpp"

namespace orrery::scenarios {

namespace {

models::RecipeQuestion recipe_question(const models::Question& question) {
  const models::Plan& plan = question.plan;
  return {.stack = question.software.name,
          .year = question.software.year,
          .model = question.model,
          .gpu = question.cluster.gpu(),
          .task = plan.task,
          .precision = plan.formats.precision,
          .recompute = plan.recompute.kind,
          .zero = plan.sharding.zero,
          .degrees = models::recipe_degrees(plan),
          .release = models::last_release_of(question.software.year),
          .gpus = plan.gpus(),
          .global_batch = plan.batch.global};
}

}  // namespace

bool has_stack_recipe(const models::Question& question,
                      const std::function<bool(std::string_view)>& stated) {
  models::Plan plan = question.plan;
  return !models::take_recipe(recipe_question(question), stated, plan).empty();
}

std::vector<models::RecipeChoice> take_stack_recipe(
    models::Question& question, const std::function<bool(std::string_view)>& stated) {
  const models::Plan plan = question.plan;
  const models::RecipeQuestion asked = recipe_question(question);
  std::vector<std::string> left_out;
  const auto is_stated = [&](std::string_view key) {
    return stated(key) || std::ranges::find(left_out, key) != left_out.end();
  };
  while (true) {
    std::vector<models::RecipeChoice> taken = models::take_recipe(asked, is_stated, question.plan);
    if (taken.empty()) return taken;
    std::string key = models::key_in_conflict(models::conflicts(question), taken);
    if (key.empty()) return taken;
    left_out.push_back(std::move(key));
    question.plan = plan;
  }
}

}  // namespace orrery::scenarios
