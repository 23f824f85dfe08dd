#pragma once
// Enumerated fields of a plan and their words: where model state is kept and in which format, and
// how gradients are compressed.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

/// AdamW on all parameters, or Muon on the matrices of the layers and AdamW on the rest. Under
/// ZeRO-1 each replica updates whole matrices with Muon, so gradients are all-reduced.
/// Source  Jordan et al. 2024, "Muon", kellerjordan.github.io/posts/muon; Liu et al. 2025, "Muon is
///         scalable for LLM training", arXiv 2502.16982; Megatron-Core,
///         LayerWiseDistributedOptimizer
enum class Optimizer : std::uint8_t { adam, muon };
inline constexpr Words<Optimizer, 2> optimizer_words{
    {{Optimizer::adam, "adam"}, {Optimizer::muon, "muon"}}};

/// Format of Adam's moments: that of the master weights, bf16, or 8 bits with a scale for each
/// block.
/// Source  Dettmers et al. 2021, "8-bit optimizers via block-wise quantization", arXiv 2110.02861
enum class Moments : std::uint8_t { full, bf16, int8 };
inline constexpr Words<Moments, 3> moments_words{
    {{Moments::full, "full"}, {Moments::bf16, "bf16"}, {Moments::int8, "int8"}}};

/// Format of master weights and of moments that are `full`: fp32 next to 16-bit weights; or the
/// weights' own, which then have no masters (pure 16-bit training).
/// Source  NVIDIA Apex, amp: O2 and O3; torchtune's bf16 recipes, LitGPT's bf16-true, PyTorch's
///         FSDP example with pure_bf16
enum class StatePrecision : std::uint8_t { full, pure };
inline constexpr Words<StatePrecision, 2> state_precision_words{
    {{StatePrecision::full, "full"}, {StatePrecision::pure, "pure"}}};

/// Format in which gradients are accumulated and reduced: the stack's, or a stated one.
/// Source  --grad-reduce-in-bf16 and main_grads_dtype of Megatron-Core
enum class GradientFormat : std::uint8_t { of_stack, fp32, bf16 };
inline constexpr Words<GradientFormat, 3> gradient_format_words{
    {{GradientFormat::of_stack, "stack"},
     {GradientFormat::fp32, "fp32"},
     {GradientFormat::bf16, "bf16"}}};

/// ZeRO stage: what data-parallel ranks shard. one: optimizer state; two: gradients, too; three:
/// parameters, too.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054
enum class Zero : std::uint8_t { none, one, two, three };
inline constexpr Words<Zero, 4> zero_words{
    {{Zero::none, "0"}, {Zero::one, "1"}, {Zero::two, "2"}, {Zero::three, "3"}}};

/// What is offloaded to the host: nothing; optimizer state, whose step the host computes; that and
/// the shards of parameters, which are copied back before they are gathered.
/// Source  Ren et al. 2021, "ZeRO-Offload", arXiv 2101.06840; Rajbhandari et al. 2021,
///         "ZeRO-Infinity", arXiv 2104.07857
enum class Offload : std::uint8_t { none, optimizer, parameters };
inline constexpr Words<Offload, 3> offload_words{{{Offload::none, "none"},
                                                  {Offload::optimizer, "optimizer"},
                                                  {Offload::parameters, "parameters"}}};

/// Where offloaded state is kept: in host memory, or in files on drives of the node, through host
/// memory.
/// Source  "device" of offload_optimizer and offload_param, DeepSpeed's configuration
enum class OffloadDevice : std::uint8_t { cpu, nvme };
inline constexpr Words<OffloadDevice, 2> offload_device_words{
    {{OffloadDevice::cpu, "cpu"}, {OffloadDevice::nvme, "nvme"}}};

/// Compression of gradients before data-parallel reduction: none; a cast to fp16; the largest
/// values and their indices (top-k); two low-rank factors of each bucket as one matrix (power-sgd,
/// PyTorch's batched_powerSGD_hook); or 8 bits between a bucket's least and largest number, summed
/// in fp32 by the rank that owns each share (int8). What top-k and power-sgd leave out is added to
/// the next step's gradients.
/// Source  Lin et al. 2018, "Deep gradient compression", arXiv 1712.01887; Vogels et al. 2019,
///         "PowerSGD", arXiv 1905.13727; Gan et al. 2021, "BAGUA", arXiv 2107.01499 (its ByteGrad)
enum class Compression : std::uint8_t { none, fp16, top_k, power_sgd, int8 };
inline constexpr Words<Compression, 5> compression_words{{{Compression::none, "none"},
                                                          {Compression::fp16, "fp16"},
                                                          {Compression::top_k, "top-k"},
                                                          {Compression::power_sgd, "power-sgd"},
                                                          {Compression::int8, "int8"}}};

inline std::string_view name(Compression compression) {
  return word_of(compression_words, compression);
}

}  // namespace orrery::models
