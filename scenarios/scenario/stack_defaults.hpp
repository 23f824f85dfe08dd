#pragma once
// Applies a software profile's own defaults to plan fields that nobody stated.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "models/software/recipes.hpp"

namespace orrery::scenarios {

/// Chunks per stage of a stack that puts about `layers_per_chunk` layers into each: the nearest
/// number that divides a stage's layers, or 1 where the micro-batches are no multiple of the
/// stages. 0 layers: 1.
std::int64_t usual_virtual_stages(const models::Plan& plan, const models::Model& model,
                                  std::int64_t layers_per_chunk);

/// A stack whose attention kernel has no sinks takes cuDNN's for a model that has them, where the
/// GPU has it: what is trained today is not trained unfused. Nothing where it needs no change.
/// Source  NVIDIA/TransformerEngine, issues 2318 and 2483: learnable sinks since cuDNN 9.13.1
std::optional<models::AttentionKernel> kernel_with_sinks(const models::Model& model,
                                                         const hardware::Gpu& gpu,
                                                         const models::Software& software);

/// Which of a stack's defaults a plan has taken.
struct StackDefaults {
  std::vector<models::RecipeChoice> taken;
  /// Those that conflict with the rest of the plan, and why; chunks of a pipeline are not listed.
  std::vector<models::RecipeChoice> conflicting;
};

/// Sets what the profile states as its defaults: recomputation, sharding of replicas, sequence
/// parallelism of tensor groups, chunks of a pipeline; and a kernel for attention sinks. Precision
/// is left out: it is the run's own choice.
StackDefaults take_stack_defaults(models::Question& question,
                                  const std::function<bool(std::string_view)>& stated);

}  // namespace orrery::scenarios
