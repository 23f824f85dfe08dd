#pragma once
// FLOPs that are useful, FLOPs that are done twice, and how far a step is from doing only those.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// FLOPs per token that recomputation adds, by the convention of `forward_flops_per_token`: the
/// layers' forward again (full), or of it the products that are listed (selective).
double recomputed_flops_per_token(const Model& model, const Plan& plan);

/// FLOPs per token of forward and backward: 3 x forward; frozen weights have no gradient, adapters
/// come on top, a frozen reference goes forward.
double training_flops_per_token(const Model& model, const Plan& plan);

/// From the ideal machine (every GPU at its dense peak, model FLOPs only) to the predicted step of
/// the slowest rank; the parts add up to it, exactly.
std::vector<WaterfallPart> waterfall_of(const Question& question, const Prediction& prediction);

}  // namespace orrery::models
