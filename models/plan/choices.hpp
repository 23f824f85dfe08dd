#pragma once
// Choices of a plan by their words.

#include <cstdint>
#include <string_view>

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

enum class Recompute : std::uint8_t { none, selective, full };
inline constexpr Words<Recompute, 3> recompute_words{
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};

/// What data-parallel ranks shard among them: optimizer state; and gradients; and parameters.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054
enum class Zero : std::uint8_t { none, one, two, three };
inline constexpr Words<Zero, 4> zero_words{
    {{Zero::none, "0"}, {Zero::one, "1"}, {Zero::two, "2"}, {Zero::three, "3"}}};

/// How ranks that share a sequence attend to all of it: every rank gathers all keys and values,
/// each with one piece of the sequence (contiguous: the last has the most to attend to) or an early
/// and a late one; or they travel round the ranks next to attention, each rank with an early and a
/// late piece of the sequence, so that causal attention is as much work on each; or ranks trade
/// their pieces of the sequence for a share of the heads; or the last inside groups and a ring of
/// the groups. Source  Dubey et al. 2024, "The Llama 3 herd of models", arXiv 2407.21783,
/// section 3.3.2; Liu et
///         al. 2023, "Ring attention", arXiv 2310.01889; Jacobs et al. 2023, "DeepSpeed Ulysses",
///         arXiv 2309.14509; Fang & Zhao 2024, "USP", arXiv 2405.07719
enum class ContextForm : std::uint8_t { all_gather, contiguous, ring, ulysses, hierarchical };
inline constexpr Words<ContextForm, 5> context_form_words{
    {{ContextForm::all_gather, "all-gather"},
     {ContextForm::contiguous, "contiguous"},
     {ContextForm::ring, "ring"},
     {ContextForm::ulysses, "ulysses"},
     {ContextForm::hierarchical, "hierarchical"}}};

/// What the host keeps of a rank's state: nothing; the optimizer's, whose step it computes; and the
/// shards of parameters, which come back before they are gathered.
/// Source  Ren et al. 2021, "ZeRO-Offload", arXiv 2101.06840; Rajbhandari et al. 2021,
///         "ZeRO-Infinity", arXiv 2104.07857
enum class Offload : std::uint8_t { none, optimizer, parameters };
inline constexpr Words<Offload, 3> offload_words{{{Offload::none, "none"},
                                                  {Offload::optimizer, "optimizer"},
                                                  {Offload::parameters, "parameters"}}};

/// How data-parallel ranks shrink their gradients before reducing them: not at all; to half-width
/// numbers; to the largest of them with their places; or to two factors of low rank, of each bucket
/// as one matrix (PyTorch's batched_powerSGD_hook). What those two leave out is added to the next
/// step's gradients.
/// Source  Lin et al. 2018, "Deep gradient compression", arXiv 1712.01887; Vogels et al. 2019,
///         "PowerSGD", arXiv 1905.13727
enum class Compression : std::uint8_t { none, fp16, top_k, power_sgd };
inline constexpr Words<Compression, 4> compression_words{{{Compression::none, "none"},
                                                          {Compression::fp16, "fp16"},
                                                          {Compression::top_k, "top-k"},
                                                          {Compression::power_sgd, "power-sgd"}}};

/// fp8 has one scale for a tensor, of earlier steps (delayed) or of its own numbers (current);
/// fp8-block, mxfp8 and nvfp4 have one for each block (models/operations/quantisation.hpp).
enum class Precision : std::uint8_t {
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,
  fp64,
  fp8_current,
  fp8_block,
  mxfp8,
  nvfp4
};
inline constexpr Words<Precision, 10> precision_words{{{Precision::fp32, "fp32"},
                                                       {Precision::tf32, "tf32"},
                                                       {Precision::fp16, "fp16"},
                                                       {Precision::bf16, "bf16"},
                                                       {Precision::fp8, "fp8"},
                                                       {Precision::fp64, "fp64"},
                                                       {Precision::fp8_current, "fp8-current"},
                                                       {Precision::fp8_block, "fp8-block"},
                                                       {Precision::mxfp8, "mxfp8"},
                                                       {Precision::nvfp4, "nvfp4"}}};

/// How tokens reach the ranks of their experts: every copy in an all-to-all of the collective
/// library; or once per node that has any of their experts, and from there to each (DeepEP and
/// HybridEP, which inside one NVLink domain differ in their kernels alone).
/// Source  Zhao et al. 2025, "Insights into DeepSeek-V3", arXiv 2505.09343, section 4.3
enum class Dispatcher : std::uint8_t { all_to_all, deepep, hybridep };
inline constexpr Words<Dispatcher, 3> dispatcher_words{{{Dispatcher::all_to_all, "alltoall"},
                                                        {Dispatcher::deepep, "deepep"},
                                                        {Dispatcher::hybridep, "hybridep"}}};

/// What runs while tokens travel to their experts and back: nothing, the shared experts, or the
/// other direction of another micro-batch.
enum class ExpertOverlap : std::uint8_t { none, shared, micro_batches };
inline constexpr Words<ExpertOverlap, 3> expert_overlap_words{
    {{ExpertOverlap::none, "none"},
     {ExpertOverlap::shared, "shared"},
     {ExpertOverlap::micro_batches, "micro-batches"}}};

inline std::string_view name(Precision precision) {
  return word_of(precision_words, precision);
}
inline std::string_view name(Recompute recompute) {
  return word_of(recompute_words, recompute);
}
inline std::string_view name(Compression compression) {
  return word_of(compression_words, compression);
}

}  // namespace orrery::models
