// Applies the stack's recipes to a plan that a search tries.

#include <algorithm>

#include "scenarios/scenario/stack_recipe.hpp"
#include "scenarios/search/space/dimensions.hpp"

namespace orrery::scenarios {

std::vector<models::RecipeChoice> take_recipe(const PlanQuery& query, models::Question& question) {
  return take_stack_recipe(question, [&](std::string_view key) {
    return is_searched(key, query.software) ||
           std::ranges::find(query.stated, key) != query.stated.end();
  });
}

}  // namespace orrery::scenarios
