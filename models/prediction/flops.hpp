#pragma once
// Useful FLOPs, recomputed FLOPs, and the waterfall from an ideal machine, which does only the
// useful ones at peak, to the predicted step.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// FLOPs per token that recomputation adds, by the convention of `forward_flops_per_token`: the
/// layers' forward again (full), or only its listed modules (selective).
/// all  share of the micro-batches of which all layers recompute, whatever part the others do
double recomputed_flops_per_token(const Model& model, const Plan& plan, double all = 0);
/// That share, over all stages.
double recomputing_micro_batches(const Program& program);

/// FLOPs per token of forward and backward: 3 x forward. Frozen weights have no weight gradient,
/// adapters come on top, a frozen reference adds one forward.
double training_flops_per_token(const Model& model, const Plan& plan);

/// From the ideal machine (every GPU at its dense peak, model FLOPs only) to the predicted step of
/// the slowest rank; the parts add up to it, exactly. FLOPs outside the model's count are those
/// that the average rank does beyond model FLOPs and recomputation: scores computed again in
/// backward, masked ones without a fused kernel, padding; negative where a stack leaves counted
/// ones out.
std::vector<WaterfallPart> waterfall_of(const Question& question, const Prediction& prediction);

}  // namespace orrery::models
