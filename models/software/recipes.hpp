#pragma once
// Recipes fill in the discrete plan choices that a publication or a user leaves open, by stack, its
// release, task, GPU and the model's sizes as its config states them. Published recipes come first
// (published_recipes.hpp), then the rules of a stack, models/recipes/*.json; a rule is
// `{"stack", "task"?, "from_year"?, "to_year"?, "to_release"?, "gpu"?, "generation"?, "precision"?,
// "recompute"?, "zero"?, "layers"?, "experts"?, "experts_from"?, "hidden_from"?, "hidden_to"?,
// "plan": {KEY: VALUE}, "source"}`. Of the rules that hold, the first that states a key decides it.
// No model is named: a renamed one gets the same answer. No number here scales a time.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu/gpu.hpp"
#include "models/model/model.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/plan.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

/// A release, "26.02.01", as a list of numbers, which compares in order.
using Release = std::vector<int>;
Release release_in(std::string_view text);

/// The parallel degrees of a recipe's plan.
struct RecipeDegrees {
  std::int64_t tensor = 1, pipeline = 1, virtual_stages = 1, context = 1, expert = 1;
  bool operator==(const RecipeDegrees&) const = default;
};
RecipeDegrees recipe_degrees(const Plan& plan);

/// A release after all others of a year; empty where the year is not known (0).
Release last_release_of(int year);

/// The run for which a recipe is looked up.
struct RecipeQuestion {
  std::string_view stack;
  int year = 0;  // 0: not known; rules of any year hold
  const Model& model;
  const hardware::Gpu& gpu;
  Task task = Task::pretrain;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;
  RecipeDegrees degrees{};
  Release release{};                        // none: any
  std::int64_t gpus = 0, global_batch = 0;  // 0: not known
};

/// A plan choice that a recipe makes, and its source.
struct RecipeChoice {
  std::string key;  // field of the plan
  Json value;
  std::string source;
};

/// All choices that published recipes and rules make for a run, each key once.
std::vector<RecipeChoice> recipe_of(const RecipeQuestion& question);

/// Applies them to the plan's fields that are not stated. Returns what was applied.
std::vector<RecipeChoice> take_recipe(const RecipeQuestion& question,
                                      const std::function<bool(std::string_view)>& stated,
                                      Plan& plan);
/// The first applied key that is in conflict with the rest of the plan; empty: none.
std::string key_in_conflict(const std::vector<Conflict>& found,
                            const std::vector<RecipeChoice>& taken);
/// The assumption to report: "/plan/lora_rank: not stated; 16 assumed, from the recipes of nemo
/// (SOURCE)".
std::string assumption_of(const RecipeChoice& taken, std::string_view stack);

}  // namespace orrery::models
