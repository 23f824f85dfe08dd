#pragma once
// Shapes that a calibration of GPUs times beyond those of the shipped plans.

#include <cstdint>

namespace orrery::scenarios {

enum class GpuAttention { fused, unfused };

/// One model of two layers, and how a rank runs it. ffn 0: four times hidden.
struct GpuCase {
  const char* family;
  std::int64_t hidden, heads, kv_heads, ffn, seq, micro_batch, tensor, vocab;
  const char* precision = "bf16";
  GpuAttention attention = GpuAttention::fused;
};

/// Every operation of their blocks is timed: norms, losses, updates over sizes.
inline constexpr GpuCase whole_cases[] = {
    {"llama", 128, 2, 2, 384, 128, 1, 1, 512},
    {"gpt", 128, 2, 2, 0, 64, 2, 1, 512},
    {"gpt", 512, 8, 8, 0, 512, 1, 1, 8192},
    {"gpt", 768, 12, 12, 0, 1024, 1, 1, 50304},
    {"gpt", 1024, 16, 16, 0, 1024, 4, 1, 50304},
    {"gpt", 2048, 16, 16, 0, 2048, 4, 1, 50304},
    {"gpt", 2048, 32, 32, 0, 1000, 1, 1, 32000},
    {"llama", 1024, 16, 4, 2816, 4096, 1, 1, 32000},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32000},
    {"llama", 2048, 32, 8, 8192, 2048, 4, 1, 32000},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32000},
    {"llama", 4096, 32, 8, 14336, 8192, 2, 4, 128256},
    {"gpt", 1024, 16, 16, 0, 1024, 2, 1, 8192, "bf16", GpuAttention::unfused},
    {"gpt", 2048, 16, 16, 0, 2048, 1, 1, 8192, "bf16", GpuAttention::unfused},
    {"gpt", 1024, 16, 16, 0, 512, 2, 1, 8192, "fp32", GpuAttention::unfused},
    {"gpt", 1024, 16, 16, 0, 1024, 4, 1, 8192, "fp16"},
    {"llama", 1024, 16, 4, 2816, 1024, 1, 1, 8192, "fp8"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 8192, "fp8"},
};

/// Their products alone are timed, forward, input gradient and weight gradient; many are one
/// tensor rank's of a wider model.
inline constexpr GpuCase product_cases[] = {
    {"llama", 128, 2, 2, 384, 96, 1, 1, 512},
    {"llama", 1024, 16, 16, 2816, 512, 1, 1, 32768},
    {"llama", 1024, 16, 16, 2816, 4096, 4, 1, 32768},
    {"llama", 2048, 16, 16, 5632, 1000, 1, 1, 32768},
    {"llama", 2048, 16, 16, 5632, 8192, 1, 1, 32768},
    {"llama", 4096, 32, 8, 14336, 2048, 1, 1, 32768},
    {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768},
    {"llama", 4096, 32, 32, 11008, 4096, 1, 2, 32768},
    {"llama", 5120, 40, 40, 13824, 4096, 1, 1, 32768},
    {"llama", 5120, 40, 40, 13824, 1000, 3, 4, 32768},
    {"llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768},
    {"llama", 8192, 64, 8, 28672, 8192, 2, 4, 32768},
    {"llama", 8192, 64, 8, 28672, 2048, 1, 1, 32768},
    {"llama", 16384, 128, 8, 53248, 8192, 1, 8, 32768},
    {"llama", 16384, 128, 8, 53248, 512, 1, 8, 32768},
    {"llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "fp16"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "fp16"},
    {"llama", 1024, 16, 16, 2816, 1000, 1, 1, 32768, "tf32"},
    {"llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "tf32"},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "tf32"},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp32"},
    {"llama", 128, 2, 2, 384, 64, 1, 1, 512, "fp8"},
    {"llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp8"},
    {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768, "fp8"},
    {"llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768, "fp8"},
    {"llama", 8192, 64, 8, 28672, 8192, 1, 4, 32768, "fp8"},
};

/// Their attention alone: lengths 512 to 16384, heads of 64 and 128, groups of queries.
inline constexpr GpuCase attention_cases[] = {
    {"llama", 128, 2, 2, 384, 64, 1, 1, 512},        {"llama", 2048, 16, 16, 5632, 512, 16, 1, 512},
    {"llama", 2048, 16, 16, 5632, 1024, 8, 1, 512},  {"llama", 2048, 16, 16, 5632, 2048, 4, 1, 512},
    {"llama", 2048, 16, 16, 5632, 4096, 2, 1, 512},  {"llama", 2048, 16, 16, 5632, 8192, 1, 1, 512},
    {"llama", 2048, 16, 16, 5632, 16384, 1, 1, 512}, {"llama", 2048, 32, 32, 5632, 512, 16, 1, 512},
    {"llama", 2048, 32, 32, 5632, 2048, 4, 1, 512},  {"llama", 2048, 32, 32, 5632, 4096, 2, 1, 512},
    {"llama", 2048, 32, 32, 5632, 16384, 1, 1, 512}, {"llama", 4096, 32, 8, 14336, 1024, 4, 1, 512},
    {"llama", 4096, 32, 8, 14336, 4096, 1, 1, 512},  {"llama", 4096, 32, 8, 14336, 8192, 1, 1, 512},
    {"llama", 4096, 32, 8, 14336, 16384, 1, 1, 512},
};

/// Layers of experts: few wide ones, many narrow ones; of so many tokens in all.
struct ExpertCase {
  std::int64_t experts, k, n, rows;
};
inline constexpr ExpertCase expert_cases[] = {
    {4, 128, 256, 96},       {8, 4096, 14336, 4096}, {8, 14336, 4096, 4096},
    {64, 2048, 1408, 16384}, {64, 2048, 1408, 4096}, {16, 4096, 4096, 8192},
};

}  // namespace orrery::scenarios
