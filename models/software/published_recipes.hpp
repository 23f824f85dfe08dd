#pragma once
// Published recipes, one per line of models/recipes/published.csv: the discrete plan choices of
// Megatron-Bridge, NeMo, DGX Cloud, MLPerf and torchtitan for a model of given sizes on a given
// GPU, by release. The first columns are what a line is found by; the others are keys of a plan,
// where an empty cell leaves the key open. An empty GPU, precision, task, number of GPUs or global
// batch is any: the recipe's source names none. A vendor for the GPU is all of its GPUs. No model
// is named, and no number here scales a time.

#include <vector>

#include "models/software/recipes.hpp"

namespace orrery::models {

/// The choices of the line that matches the question best. A line must be of the asked stack, its
/// parent or a child, of a model of the same widths, layers and number of experts, of the same
/// task, of a GPU of the same vendor, and not from a later month than the asked release. Among
/// those, lines are preferred in turn that have the same GPU, expert degree, tensor and pipeline
/// degrees (or else the stack itself), precision, virtual stages, all degrees, global batch and
/// number of GPUs; then the latest release, and of two lines of one release the one that began
/// later. Choices that a recipe makes to fit its own plan into memory, or for its own context
/// group, are taken only from a line that agrees on GPU, precision and all degrees. A line of any
/// GPU or precision agrees with the asked one, and comes after lines that name it.
std::vector<RecipeChoice> published_choices(const RecipeQuestion& question);

/// Of the recipes of a stack, its parent and its children, those that state a plan's field, and how
/// many of them give it this value.
struct RecipeShare {
  std::int64_t stating = 0, with_value = 0;
};
RecipeShare recipe_share(std::string_view stack, std::string_view key, const Json& value);

}  // namespace orrery::models
