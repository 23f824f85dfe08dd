#pragma once
// Choices of a plan by their words: what a step trains, and what saves its memory.

#include <cstdint>

#include "sim/words.hpp"

namespace orrery::models {

/// What a step trains: all parameters, on long or on fine-tuning documents; adapters next to frozen
/// matrices, which qlora stores in 4 bits; preferences between pairs, against a frozen reference.
enum class Task : std::uint8_t { pretrain, sft, lora, qlora, dpo };
inline constexpr Words<Task, 5> task_words{{{Task::pretrain, "pretrain"},
                                            {Task::sft, "sft"},
                                            {Task::lora, "lora"},
                                            {Task::qlora, "qlora"},
                                            {Task::dpo, "dpo"}}};

/// Matrices of a layer that may have an adapter.
/// Source  Hu et al. 2021, "LoRA", arXiv 2106.09685
enum class LoraTarget : std::uint8_t { qkv, projection, up, down };
inline constexpr Words<LoraTarget, 4> lora_target_words{{{LoraTarget::qkv, "qkv"},
                                                         {LoraTarget::projection, "projection"},
                                                         {LoraTarget::up, "up"},
                                                         {LoraTarget::down, "down"}}};

/// What selective recomputation runs again: the attention core, norms, the activation, all of the
/// MLP. Outputs of norms and activations are dropped though a product reads them.
/// Source  recompute_modules of Megatron-Core
enum class RecomputeModule : std::uint8_t { core_attn, layernorm, activation, mlp };
inline constexpr Words<RecomputeModule, 4> recompute_module_words{
    {{RecomputeModule::core_attn, "core_attn"},
     {RecomputeModule::layernorm, "layernorm"},
     {RecomputeModule::activation, "activation"},
     {RecomputeModule::mlp, "mlp"}}};

/// What Adam's moments are kept in: the format of the master weights, bf16, or 8 bits with a scale
/// for each block.
/// Source  Dettmers et al. 2021, "8-bit optimizers via block-wise quantization", arXiv 2110.02861
enum class Moments : std::uint8_t { full, bf16, int8 };
inline constexpr Words<Moments, 3> moments_words{
    {{Moments::full, "full"}, {Moments::bf16, "bf16"}, {Moments::int8, "int8"}}};

}  // namespace orrery::models
