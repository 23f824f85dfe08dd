#pragma once
// What follows from a complete plan: questions that it answers without a field of its own.

#include <cstdint>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// Ranks that cut each expert.
/// Source  Megatron-LM, --expert-tensor-parallel-size: by default tensor-model-parallel-size
inline std::int64_t expert_tensor_of(const Plan& plan) {
  return plan.expert_tensor > 0 ? plan.expert_tensor : plan.tensor;
}

/// ZeRO-2 and ZeRO-3 (FSDP): more than the optimizer's state is sharded.
inline bool shards_gradients(const Plan& plan) {
  return plan.replicas() > 1 && (plan.zero == Zero::two || plan.zero == Zero::three);
}

/// A context group's two factors: `heads` ranks trade pieces of the sequence for heads, and keys
/// and values are gathered or travel between `pieces` such groups.
struct ContextSplit {
  std::int64_t heads = 1, pieces = 1;
};
ContextSplit context_split(const Plan& plan);
/// Are all keys and values gathered, rather than passed round?
inline bool gathers_keys(const Plan& plan) {
  return plan.context_form == ContextForm::all_gather ||
         plan.context_form == ContextForm::contiguous;
}

/// Adapters alone are trained.
inline bool trains_adapters(const Plan& plan) {
  return plan.task == Task::lora || plan.task == Task::qlora;
}

/// Most weights are left as they are, those of adapters' layers or of a reference: replicas share
/// them out as they do what is trained.
inline bool keeps_most_weights(const Plan& plan) {
  return trains_adapters(plan) || plan.task == Task::dpo;
}

/// Tokens of a document as attention's work counts them: the mean over tokens of their document's
/// length, sum l^2 / sum l; seq_len where nothing is packed.
std::int64_t attended_length(const Plan& plan);

}  // namespace orrery::models
