#pragma once
// Choices of a plan by their words: where state is, in what, and how gradients travel.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

/// What Adam's moments are kept in: the format of the master weights, bf16, or 8 bits with a scale
/// for each block.
/// Source  Dettmers et al. 2021, "8-bit optimizers via block-wise quantization", arXiv 2110.02861
enum class Moments : std::uint8_t { full, bf16, int8 };
inline constexpr Words<Moments, 3> moments_words{
    {{Moments::full, "full"}, {Moments::bf16, "bf16"}, {Moments::int8, "int8"}}};

/// What data-parallel ranks shard among them: optimizer state; and gradients; and parameters.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054
enum class Zero : std::uint8_t { none, one, two, three };
inline constexpr Words<Zero, 4> zero_words{
    {{Zero::none, "0"}, {Zero::one, "1"}, {Zero::two, "2"}, {Zero::three, "3"}}};

/// What the host keeps of a rank's state: nothing; the optimizer's, whose step it computes; and the
/// shards of parameters, which come back before they are gathered.
/// Source  Ren et al. 2021, "ZeRO-Offload", arXiv 2101.06840; Rajbhandari et al. 2021,
///         "ZeRO-Infinity", arXiv 2104.07857
enum class Offload : std::uint8_t { none, optimizer, parameters };
inline constexpr Words<Offload, 3> offload_words{{{Offload::none, "none"},
                                                  {Offload::optimizer, "optimizer"},
                                                  {Offload::parameters, "parameters"}}};

/// Where the host keeps what is offloaded: in its memory, or in files on drives of the node, which
/// pass through its memory.
/// Source  "device" of offload_optimizer and offload_param, DeepSpeed's configuration
enum class OffloadDevice : std::uint8_t { cpu, nvme };
inline constexpr Words<OffloadDevice, 2> offload_device_words{
    {{OffloadDevice::cpu, "cpu"}, {OffloadDevice::nvme, "nvme"}}};

/// How data-parallel ranks shrink their gradients before reducing them: not at all; to half-width
/// numbers; to the largest of them with their places; to two factors of low rank, of each bucket
/// as one matrix (PyTorch's batched_powerSGD_hook); or to 8 bits between a bucket's least and
/// largest number, summed in fp32 by the rank that owns each share. What top-k and power-sgd leave
/// out is added to the next step's gradients.
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
