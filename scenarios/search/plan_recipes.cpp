// Applies the stack's recipes to a plan that a search tries.

#include <algorithm>

#include "scenarios/search/dimensions.hpp"

namespace orrery::scenarios {

std::vector<models::RecipeChoice> take_recipe(const PlanQuery& query, models::Question& question) {
  const models::Plan plan = question.plan;
  const models::RecipeQuestion asked{.stack = query.software.name,
                                     .year = query.software.year,
                                     .model = query.model,
                                     .gpu = query.cluster.gpu(),
                                     .task = plan.task,
                                     .precision = plan.precision,
                                     .recompute = plan.recompute,
                                     .degrees = models::recipe_degrees(plan),
                                     .release = models::last_release_of(query.software.year)};
  std::vector<std::string> left_out;
  const auto stated = [&](std::string_view key) {
    const auto in = [&](const std::vector<std::string>& keys) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    return is_searched(key) || key == "context_form" || in(query.stated) || in(left_out);
  };
  std::vector<models::RecipeChoice> taken = models::take_recipe(asked, stated, question.plan);
  while (!taken.empty()) {
    const std::string key = models::key_in_conflict(models::conflicts(question), taken);
    if (key.empty()) break;
    left_out.push_back(key);
    question.plan = plan;
    taken = models::take_recipe(asked, stated, question.plan);
  }
  return taken;
}

}  // namespace orrery::scenarios
