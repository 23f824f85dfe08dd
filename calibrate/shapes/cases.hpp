#pragma once
// Shapes that a calibration times beyond those of the plans that it is given.

#include <array>
#include <cstdint>

namespace orrery::calibrate {

/// What is measured: a core of the machine's processor, or a GPU.
enum class Target : std::uint8_t { processor, gpu };

/// Which operations of a case's blocks are timed.
enum class Timed : std::uint8_t {
  whole,     // all operations, block by block: norms, losses, updates over sizes
  at_once,   // as `whole`, and also with several concurrent ranks
  products,  // single GEMMs: forward, input gradient and weight gradient
  attention  // single attention calls
};

enum class CaseAttention : std::uint8_t { fused, unfused };

/// A model of two layers, and how a rank runs it; many are one tensor-parallel rank of a wider
/// model. ffn 0: four times hidden.
struct CalibrationCase {
  Target target;
  Timed timed;
  const char* family;
  std::int64_t hidden, heads, kv_heads, ffn, seq, micro_batch, tensor, vocab;
  const char* precision;
  CaseAttention attention;
  const char* moments = "";  // of Adam, if narrower than the state: "int8"
};

/// All cases. For a processor: extremes and middles of what one core trains in seconds. For a GPU:
/// hidden sizes from 128 to 16384, sequence lengths from 64 to 16384, head sizes 64 and 128,
/// grouped-query attention.
inline constexpr auto calibration_cases = [] {
  using enum Target;
  using enum Timed;
  using enum CaseAttention;
  return std::to_array<CalibrationCase>({
      // clang-format off
    {processor, whole, "gpt", 64, 2, 2, 0, 64, 1, 1, 512, "fp32", unfused},
    {processor, at_once, "gpt", 128, 4, 4, 0, 128, 1, 1, 1024, "fp32", unfused},
    {processor, whole, "gpt", 128, 2, 2, 0, 256, 2, 1, 512, "fp32", unfused},
    {processor, at_once, "gpt", 256, 4, 4, 0, 128, 1, 1, 2048, "fp32", unfused},
    {processor, whole, "gpt", 256, 8, 8, 0, 256, 1, 2, 1024, "fp32", unfused},
    {processor, whole, "gpt", 256, 4, 4, 0, 64, 4, 1, 512, "fp32", unfused},
    {processor, whole, "gpt", 384, 6, 6, 0, 256, 1, 1, 1024, "fp32", unfused},
    {processor, at_once, "gpt", 512, 8, 8, 0, 256, 1, 1, 4096, "fp32", unfused},
    {processor, whole, "gpt", 512, 8, 8, 0, 128, 1, 2, 2048, "fp32", unfused},
    {processor, whole, "gpt", 768, 12, 12, 0, 128, 1, 1, 1024, "fp32", unfused},
    {processor, whole, "gpt", 192, 6, 6, 0, 512, 1, 1, 1024, "fp32", unfused},
    {processor, whole, "gpt", 128, 4, 4, 0, 128, 4, 2, 2048, "fp32", unfused},
    {processor, whole, "llama", 256, 4, 4, 704, 128, 1, 1, 1024, "fp32", unfused},
    {processor, whole, "llama", 384, 6, 6, 1024, 256, 1, 1, 2048, "fp32", unfused},
    {processor, whole, "llama", 128, 4, 4, 384, 128, 2, 1, 512, "fp32", unfused},
    {processor, at_once, "llama", 512, 8, 8, 1408, 128, 1, 1, 4096, "fp32", unfused},
    {processor, whole, "llama", 256, 8, 8, 704, 256, 2, 2, 1024, "fp32", unfused},
    {processor, whole, "gpt", 64, 2, 2, 0, 64, 1, 1, 512, "mxfp8", unfused},
    {processor, whole, "gpt", 256, 4, 4, 0, 128, 1, 1, 512, "mxfp8", unfused},
    {processor, whole, "gpt", 256, 8, 8, 0, 256, 1, 1, 1024, "mxfp8", unfused},
    {processor, whole, "gpt", 64, 2, 2, 0, 64, 1, 1, 512, "nvfp4", unfused},
    {processor, whole, "gpt", 256, 4, 4, 0, 128, 1, 1, 512, "nvfp4", unfused},
    {processor, whole, "gpt", 256, 8, 8, 0, 256, 1, 1, 1024, "nvfp4", unfused},
    {processor, whole, "gpt", 64, 2, 2, 0, 64, 1, 1, 1024, "fp32", unfused, "int8"},
    {processor, whole, "llama", 256, 4, 4, 704, 64, 1, 1, 512, "fp32", unfused, "int8"},
    {gpu, whole, "llama", 128, 2, 2, 384, 128, 1, 1, 512, "bf16", fused},
    {gpu, whole, "gpt", 128, 2, 2, 0, 64, 2, 1, 512, "bf16", fused},
    {gpu, whole, "gpt", 512, 8, 8, 0, 512, 1, 1, 8192, "bf16", fused},
    {gpu, whole, "gpt", 768, 12, 12, 0, 1024, 1, 1, 50304, "bf16", fused},
    {gpu, whole, "gpt", 1024, 16, 16, 0, 1024, 4, 1, 50304, "bf16", fused},
    {gpu, whole, "gpt", 2048, 16, 16, 0, 2048, 4, 1, 50304, "bf16", fused},
    {gpu, whole, "gpt", 2048, 32, 32, 0, 1000, 1, 1, 32000, "bf16", fused},
    {gpu, whole, "llama", 1024, 16, 4, 2816, 4096, 1, 1, 32000, "bf16", fused},
    {gpu, whole, "llama", 2048, 16, 16, 5632, 2048, 1, 1, 32000, "bf16", fused},
    {gpu, whole, "llama", 2048, 32, 8, 8192, 2048, 4, 1, 32000, "bf16", fused},
    {gpu, whole, "llama", 4096, 32, 8, 14336, 4096, 1, 1, 32000, "bf16", fused},
    {gpu, whole, "llama", 4096, 32, 8, 14336, 8192, 2, 4, 128256, "bf16", fused},
    {gpu, whole, "gpt", 1024, 16, 16, 0, 1024, 2, 1, 8192, "bf16", unfused},
    {gpu, whole, "gpt", 2048, 16, 16, 0, 2048, 1, 1, 8192, "bf16", unfused},
    {gpu, whole, "gpt", 1024, 16, 16, 0, 512, 2, 1, 8192, "fp32", unfused},
    {gpu, whole, "gpt", 1024, 16, 16, 0, 1024, 4, 1, 8192, "fp16", fused},
    {gpu, whole, "llama", 1024, 16, 4, 2816, 1024, 1, 1, 8192, "fp8", fused},
    {gpu, whole, "llama", 4096, 32, 8, 14336, 4096, 1, 1, 8192, "fp8", fused},
    {gpu, products, "llama", 128, 2, 2, 384, 96, 1, 1, 512, "bf16", fused},
    {gpu, products, "llama", 1024, 16, 16, 2816, 512, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 1024, 16, 16, 2816, 4096, 4, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 1000, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 8192, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 4096, 32, 8, 14336, 2048, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 4096, 32, 32, 11008, 4096, 1, 2, 32768, "bf16", fused},
    {gpu, products, "llama", 5120, 40, 40, 13824, 4096, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 5120, 40, 40, 13824, 1000, 3, 4, 32768, "bf16", fused},
    {gpu, products, "llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768, "bf16", fused},
    {gpu, products, "llama", 8192, 64, 8, 28672, 8192, 2, 4, 32768, "bf16", fused},
    {gpu, products, "llama", 8192, 64, 8, 28672, 2048, 1, 1, 32768, "bf16", fused},
    {gpu, products, "llama", 16384, 128, 8, 53248, 8192, 1, 8, 32768, "bf16", fused},
    {gpu, products, "llama", 16384, 128, 8, 53248, 512, 1, 8, 32768, "bf16", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "fp16", fused},
    {gpu, products, "llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "fp16", fused},
    {gpu, products, "llama", 1024, 16, 16, 2816, 1000, 1, 1, 32768, "tf32", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 4096, 1, 1, 32768, "tf32", fused},
    {gpu, products, "llama", 4096, 32, 8, 14336, 4096, 1, 1, 32768, "tf32", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp32", fused},
    {gpu, products, "llama", 128, 2, 2, 384, 64, 1, 1, 512, "fp8", fused},
    {gpu, products, "llama", 2048, 16, 16, 5632, 2048, 1, 1, 32768, "fp8", fused},
    {gpu, products, "llama", 4096, 32, 8, 14336, 8192, 1, 1, 32768, "fp8", fused},
    {gpu, products, "llama", 8192, 64, 8, 28672, 4096, 1, 8, 32768, "fp8", fused},
    {gpu, products, "llama", 8192, 64, 8, 28672, 8192, 1, 4, 32768, "fp8", fused},
    {gpu, attention, "llama", 128, 2, 2, 384, 64, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 512, 16, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 1024, 8, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 2048, 4, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 4096, 2, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 8192, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 16, 16, 5632, 16384, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 32, 32, 5632, 512, 16, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 32, 32, 5632, 2048, 4, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 32, 32, 5632, 4096, 2, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 2048, 32, 32, 5632, 16384, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 4096, 32, 8, 14336, 1024, 4, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 4096, 32, 8, 14336, 4096, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 4096, 32, 8, 14336, 8192, 1, 1, 512, "bf16", fused},
    {gpu, attention, "llama", 4096, 32, 8, 14336, 16384, 1, 1, 512, "bf16", fused},
      // clang-format on
  });
}();

/// Expert layers: few wide experts and many narrow ones, for `rows` tokens in total.
struct ExpertCase {
  Target target;
  std::int64_t experts, k, n, rows;
};
inline constexpr ExpertCase expert_cases[] = {
    {Target::processor, 4, 128, 256, 128}, {Target::processor, 8, 256, 512, 512},
    {Target::gpu, 4, 128, 256, 96},        {Target::gpu, 8, 4096, 14336, 4096},
    {Target::gpu, 8, 14336, 4096, 4096},   {Target::gpu, 64, 2048, 1408, 16384},
    {Target::gpu, 64, 2048, 1408, 4096},   {Target::gpu, 16, 4096, 4096, 8192},
};

}  // namespace orrery::calibrate
