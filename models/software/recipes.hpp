#pragma once
// What public recipes fix and a publication or a user leaves open: discrete choices of a plan, by
// stack, its release, task, GPU and the model's sizes as its config states them. Published recipes
// come first (published_recipes.hpp), then rules of a stack, models/recipes/*.json; a rule is
// `{"stack", "task"?, "from_year"?, "to_year"?, "gpu"?, "generation"?, "precision"?, "recompute"?,
// "layers"?, "experts"?, "experts_from"?, "hidden_from"?, "hidden_to"?, "plan": {KEY: VALUE},
// "source"}`. Of those that hold, the first that states a key decides it. No model is named: a
// renamed one gets the same answer. No number here scales a time.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu.hpp"
#include "models/model/model.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/plan.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

/// Numbers of a release, "26.02.01", that compare in order.
using Release = std::vector<int>;

/// What a recipe's plan is cut into.
struct RecipeDegrees {
  std::int64_t tensor = 1, pipeline = 1, virtual_stages = 1, context = 1, expert = 1;
  bool operator==(const RecipeDegrees&) const = default;
};
RecipeDegrees recipe_degrees(const Plan& plan);

/// The last release of a year; none where it is not known.
Release last_release_of(int year);

/// Whose recipe is asked for.
struct RecipeQuestion {
  std::string_view stack;
  int year = 0;  // 0: not known; rules of any year hold
  const Model& model;
  const hardware::Gpu& gpu;
  Task task = Task::pretrain;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  RecipeDegrees degrees{};
  Release release{};  // none: any
};

/// A choice, and where it stands.
struct RecipeChoice {
  std::string key;  // of the plan
  Json value;
  std::string source;
};

/// Every key that a rule decides, each once.
std::vector<RecipeChoice> recipe_of(const RecipeQuestion& question);

/// Takes them for the fields that are not stated. Returns what was taken.
std::vector<RecipeChoice> take_recipe(const RecipeQuestion& question,
                                      const std::function<bool(std::string_view)>& stated,
                                      Plan& plan);
/// The first key of those taken that does not go with the rest of the plan; empty: none.
std::string key_in_conflict(const std::vector<Conflict>& found,
                            const std::vector<RecipeChoice>& taken);
/// "/plan/lora_rank: 16 taken from the recipes of nemo (SOURCE)".
std::string assumption_of(const RecipeChoice& taken, std::string_view stack);

}  // namespace orrery::models
