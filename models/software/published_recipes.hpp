#pragma once
// Published recipes, one a line of models/recipes/published.csv: what Megatron-Bridge, NeMo, DGX
// Cloud, MLPerf and torchtitan fix for a model of these widths on this GPU, by release. A line has
// the columns that it is found by, and then keys of a plan with discrete choices; an empty cell
// says nothing. No model is named, and no number here scales a time.

#include <vector>

#include "models/software/recipes.hpp"

namespace orrery::models {

/// What the nearest line says. It is of the asked stack, its parent or a child, of a model as wide
/// with as many experts, of the same task, and not of a later month than the question's release.
/// Of those: as many layers, the same GPU, expert degree, tensor and pipeline degrees (or else the
/// stack itself), precision and virtual stages, as far as any agrees; then the last. Choices that
/// a recipe makes to fit its own plan into memory, or for its own context group, are taken of a
/// line that agrees on all of them.
std::vector<RecipeChoice> published_choices(const RecipeQuestion& question);

}  // namespace orrery::models
