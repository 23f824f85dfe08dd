#pragma once
// Applies the settings of the stack's recipes to plan fields that nobody stated.

#include <functional>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "models/software/recipes.hpp"

namespace orrery::scenarios {

/// Sets fields of the question's plan, unless they conflict with the rest of it. Returns those that
/// were set.
std::vector<models::RecipeChoice> take_stack_recipe(
    models::Question& question, const std::function<bool(std::string_view)>& stated);

/// Whether the recipes set any field that is not stated, conflicts aside. That depends on the
/// plan's task, precision, degrees, recomputation, ZeRO, GPUs and batch.
bool has_stack_recipe(const models::Question& question,
                      const std::function<bool(std::string_view)>& stated);

}  // namespace orrery::scenarios
