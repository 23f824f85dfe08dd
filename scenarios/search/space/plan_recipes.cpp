// Applies the stack's recipes to a plan that a search tries.

#include <algorithm>

#include "scenarios/scenario/stack_recipe.hpp"
#include "scenarios/search/space/dimensions.hpp"

namespace orrery::scenarios {

namespace {

auto fixed_fields(const PlanQuery& query) {
  return [&query](std::string_view key) {
    return is_searched(key, query.software) ||
           std::ranges::find(query.stated, key) != query.stated.end();
  };
}

}  // namespace

std::vector<models::RecipeChoice> take_recipe(const PlanQuery& query, models::Question& question) {
  return take_stack_recipe(question, fixed_fields(query));
}

bool has_recipe(const PlanQuery& query, const models::Question& question) {
  return has_stack_recipe(question, fixed_fields(query));
}

}  // namespace orrery::scenarios
