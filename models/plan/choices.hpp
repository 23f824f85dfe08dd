#pragma once
// Enumerated fields of a plan and the words that plans and flags use for them: what is trained,
// recomputed, in which precision, how sequences and experts are spread over ranks. Those about
// model state and gradients are in choices_of_state.hpp.

#include <cstdint>
#include <string_view>

#include "models/model/layer.hpp"
#include "models/plan/choices_of_state.hpp"
#include "sim/words.hpp"

namespace orrery::models {

/// What a step trains: pretrain and sft all parameters; lora and qlora adapters next to frozen
/// matrices, which qlora stores in 4 bits; dpo preferences between pairs of answers, against a
/// frozen reference model.
enum class Task : std::uint8_t { pretrain, sft, lora, qlora, dpo };
inline constexpr Words<Task, 5> task_words{{{Task::pretrain, "pretrain"},
                                            {Task::sft, "sft"},
                                            {Task::lora, "lora"},
                                            {Task::qlora, "qlora"},
                                            {Task::dpo, "dpo"}}};

/// Kernels that find the largest number of what they write, so that quantising it needs no pass for
/// that: norms; activation functions and their backward, outside experts.
/// Source  NVIDIA/TransformerEngine v2.8, pytorch/csrc/extensions: FUSED_NORM_AMAX and
///         FUSED_ACTIVATION_AMAX of normalization.cpp and activation.cpp, for current scaling, and
///         for nvfp4 without its random Hadamard transform
enum class AmaxKernel : std::uint8_t { norm, activation };
inline constexpr Words<AmaxKernel, 2> amax_kernel_words{
    {{AmaxKernel::norm, "norm"}, {AmaxKernel::activation, "activation"}}};

/// What selective recomputation runs again: the attention core, norms, the activation function, the
/// whole MLP, all of a layer's experts (router, both all-to-alls and shared experts included), or
/// of latent attention the GEMMs from latents up to heads with their rotary positions. Outputs of
/// norms, activation functions and those GEMMs are not saved although operations that are not
/// recomputed read them. Source  recompute_modules of Megatron-Core
enum class RecomputeModule : std::uint8_t {
  core_attn,
  layernorm,
  activation,
  mlp,
  moe,
  mla_up_proj
};
inline constexpr Words<RecomputeModule, 6> recompute_module_words{
    {{RecomputeModule::core_attn, "core_attn"},
     {RecomputeModule::layernorm, "layernorm"},
     {RecomputeModule::activation, "activation"},
     {RecomputeModule::mlp, "mlp"},
     {RecomputeModule::moe, "moe"},
     {RecomputeModule::mla_up_proj, "mla_up_proj"}}};

/// The order in which ranks are numbered, the fastest axis first.
/// Source  use_tp_pp_dp_mapping of Megatron-Core
enum class RankOrder : std::uint8_t { data_first, pipeline_first };
inline constexpr Words<RankOrder, 2> rank_order_words{
    {{RankOrder::data_first, "tp-cp-ep-dp-pp"}, {RankOrder::pipeline_first, "tp-cp-ep-pp-dp"}}};

/// Kernel of attention: the stack's own choice on the GPU, or another by name.
/// Source  attention_backend of Megatron-Core; NVTE_FLASH_ATTN and NVTE_FUSED_ATTN of Transformer
///         Engine
enum class AttentionKernel : std::uint8_t {
  of_stack,
  unfused,
  flash_1,
  flash_2,
  flash_3,
  triton,
  cudnn
};
inline constexpr Words<AttentionKernel, 7> attention_kernel_words{
    {{AttentionKernel::of_stack, "stack"},
     {AttentionKernel::unfused, "unfused"},
     {AttentionKernel::flash_1, "flash-1"},
     {AttentionKernel::flash_2, "flash-2"},
     {AttentionKernel::flash_3, "flash-3"},
     {AttentionKernel::triton, "triton"},
     {AttentionKernel::cudnn, "cudnn"}}};

enum class Recompute : std::uint8_t { none, selective, full };
inline constexpr Words<Recompute, 3> recompute_words{
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};

/// How context-parallel ranks attend to the whole sequence.
///   all_gather    every rank gathers all keys and values, and holds an early and a late piece of
///                 the sequence, so that causal attention is equal work on every rank
///   contiguous    the same with one piece for each rank: the last has the most to attend to
///   ring          keys and values go round the ranks concurrently with attention; early and late
///                 pieces
///   ulysses       an all-to-all turns a rank's piece of the sequence into a share of the heads
///   hierarchical  ulysses inside groups of ranks, a ring between the groups
/// Source  Dubey et al. 2024, "The Llama 3 herd of models", arXiv 2407.21783, section 3.3.2; Liu et
///         al. 2023, "Ring attention", arXiv 2310.01889; Jacobs et al. 2023, "DeepSpeed Ulysses",
///         arXiv 2309.14509; Fang & Zhao 2024, "USP", arXiv 2405.07719
enum class ContextForm : std::uint8_t { all_gather, contiguous, ring, ulysses, hierarchical };
inline constexpr Words<ContextForm, 5> context_form_words{
    {{ContextForm::all_gather, "all-gather"},
     {ContextForm::contiguous, "contiguous"},
     {ContextForm::ring, "ring"},
     {ContextForm::ulysses, "ulysses"},
     {ContextForm::hierarchical, "hierarchical"}}};

/// Formats of GEMMs and storage. fp8 has one scale for a tensor, from earlier steps (fp8: delayed
/// scaling) or from its own numbers (fp8-current); fp8-block, mxfp8 and nvfp4 have one scale for
/// each block (models/operations/quantisation.hpp).
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
/// library; or once to each node that has any of their experts, and from there to each expert
/// (DeepEP and HybridEP, which inside one NVLink domain differ only in their kernels).
/// Source  Zhao et al. 2025, "Insights into DeepSeek-V3", arXiv 2505.09343, section 4.3
enum class Dispatcher : std::uint8_t { all_to_all, deepep, hybridep };
inline constexpr Words<Dispatcher, 3> dispatcher_words{{{Dispatcher::all_to_all, "alltoall"},
                                                        {Dispatcher::deepep, "deepep"},
                                                        {Dispatcher::hybridep, "hybridep"}}};

/// How a rank's experts are multiplied: all in one grouped GEMM; one after another, each with its
/// own kernels (sequential); or in a loop that finds, selects and adds up each expert's rows
/// (loop). Source  TEGroupedMLP and SequentialMLP of Megatron-Core (--moe-grouped-gemm); eager
/// experts of
///         Hugging Face's transformers
enum class ExpertGemms : std::uint8_t { grouped, sequential, loop };
inline constexpr Words<ExpertGemms, 3> expert_gemms_words{{{ExpertGemms::grouped, "grouped"},
                                                           {ExpertGemms::sequential, "sequential"},
                                                           {ExpertGemms::loop, "loop"}}};

/// What overlaps with the all-to-alls of experts: nothing, the shared experts, or the opposite pass
/// (backward or forward) of another micro-batch.
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
}  // namespace orrery::models
