#pragma once
// Quantities that follow from a complete plan without being fields of it.

#include <cstdint>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/plan/plan.hpp"

namespace orrery::models {

/// Number of ranks over which each expert is cut.
/// Source  Megatron-LM, --expert-tensor-parallel-size: by default tensor-model-parallel-size
inline std::int64_t expert_tensor_of(const Plan& plan) {
  return plan.experts.tensor > 0 ? plan.experts.tensor : plan.tensor;
}

/// Is more than optimizer state sharded: ZeRO-2, ZeRO-3 (FSDP)?
inline bool shards_gradients(const Plan& plan) {
  return plan.replicas() > 1 &&
         (plan.sharding.zero == Zero::two || plan.sharding.zero == Zero::three);
}

/// The two factors of a context group: `heads` ranks exchange pieces of the sequence for heads
/// (Ulysses), and keys and values are gathered, or go round a ring, between `pieces` such groups.
struct ContextSplit {
  std::int64_t heads = 1, pieces = 1;
};
ContextSplit context_split(const Plan& plan);
/// Are all keys and values gathered, rather than passed round a ring?
inline bool gathers_keys(const Plan& plan) {
  return plan.context_exchange.form == ContextForm::all_gather ||
         plan.context_exchange.form == ContextForm::contiguous;
}

/// Does a layer that attends within chunks of the sequence have all keys on the rank of its
/// queries? Under context parallelism it then neither gathers nor passes them.
bool attends_within_rank(const AttentionPart& attention, const Plan& plan);
/// Tokens of each contiguous piece of a sequence that a rank attends with.
std::int64_t piece_length(const Plan& plan);

/// Are only adapters trained?
inline bool trains_adapters(const Plan& plan) {
  return plan.task == Task::lora || plan.task == Task::qlora;
}

/// Format of activations between matrices, and of parameters that no matrix of a layer has.
hardware::DType activation_dtype(const Plan& plan);

/// Do MLPs, those of experts too, have adapters?
inline bool adapts_mlps(const Plan& plan) {
  const auto has = [&](LoraTarget each) { return plan.adapters.targets.has(each); };
  return trains_adapters(plan) && (has(LoraTarget::up) || has(LoraTarget::down) ||
                                   has(LoraTarget::gate_part) || has(LoraTarget::up_part));
}

/// Are most weights frozen: those next to adapters, or those of a DPO reference? Replicas shard
/// frozen weights as they shard trained ones.
inline bool keeps_most_weights(const Plan& plan) {
  return trains_adapters(plan) || plan.task == Task::dpo;
}

/// Document length that gives the work of attention: the mean over tokens of the length of their
/// document, sum l^2 / sum l; seq_len where nothing is packed.
std::int64_t attended_length(const Plan& plan);

/// Lengths of the documents of one packed sequence: the plan's lengths in turn until the sequence
/// is full; the last document is cut off there. Empty: the sequence is one document.
std::vector<std::int64_t> documents_of(const Plan& plan);

}  // namespace orrery::models
