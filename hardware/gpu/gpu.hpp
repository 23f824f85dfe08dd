#pragma once
// One accelerator: data-sheet numbers, usable memory as nvidia-smi prints it, and measured curves.
// Leaves out clocks and power over time, except for one sustained share.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/curves/calibration.hpp"
#include "hardware/curves/curve.hpp"
#include "hardware/dtype.hpp"
#include "hardware/gpu/generation.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Shares of peak that a GPU sustains on large shapes, published by those who measured them. They
/// stand before those of other GPUs and after the GPU's own curves.
struct PublishedShares {
  struct Attention {
    double share_128 = 0;
    std::optional<double> share_64;
  };

  std::map<DType, double> gemm;
  std::map<std::string, Attention> attention;  // forward, by kernel
  std::optional<double> memory;                // of the memory bandwidth
};

struct Gpu {
  std::string name;  // "a100-sxm-80gb"
  std::string vendor;
  Generation generation;
  std::array<std::optional<FlopRate>, dtype_count> dense_peak;  // no sparsity
  Bandwidth memory_bandwidth{};
  Bytes memory{};         // usable, as nvidia-smi prints it
  Bandwidth scale_up{};   // NVLink or xGMI, per GPU and direction; 0 without
  Bandwidth host_link{};  // PCIe or C2C, per direction
  Power board_power{};
  Power power_limit{};  // that the board is set to; its board power unless stated
  std::string silicon;  // family of a PowerRule; empty: the generation's first
  PublishedShares published;
  std::string unmeasured;  // "no measurement on this GPU: ..."; empty with GEMM curves of its own
  /// GEMM rate in training steps that last seconds over that of the isolated kernel: the effect of
  /// power and clocks under load. A software profile's own derate comes on top of it.
  double sustained_share = 1;
  CurveOrigin sustained_origin;
  std::map<DType, GemmCurve> gemm;                  // for every dtype that has a peak
  std::map<std::string, AttentionCurve> attention;  // by kernel: "flash-2", "cudnn", ...
  MemoryCurve memory_bound;
  Calibration calibration;  // measured on this device besides the curves
  int unconfirmed = 0;      // numbers whose source is "unconfirmed"

  /// Dense peak of a format; nothing if the GPU cannot compute in it.
  std::optional<FlopRate> peak(DType type) const {
    return dense_peak[static_cast<std::size_t>(type)];
  }

  /// Time of one kernel alone on this GPU, by its curve.
  /// Errors  a format without a peak, an unknown attention kernel: InputError
  Time gemm_time(DType type, Flops work, Bytes traffic) const;
  Time attention_time(std::string_view kernel, DType type, const AttentionCall& call) const;
  Time memory_time(Bytes traffic) const { return time_of(memory_bound, memory_bandwidth, traffic); }
};

/// "gemm bf16 curve of my-gpu is missing; that of h100-sxm-80gb is used"
std::string fallback_sentence(const Gpu& gpu, std::string_view curve, const CurveOrigin& origin);

/// A curve that was not measured on this GPU and dtype.
struct FallbackNote {
  std::string sentence;    // "gemm bf16 curve of my-gpu is missing; that of h100-sxm-80gb is used"
  bool attention = false;  // of an attention kernel
  bool of_this_gpu = false;  // another dtype's curve of the same GPU is used: "that of its bf16"
  bool sustained = false;    // no curve, but Gpu::sustained_share
};
std::vector<FallbackNote> fallback_notes(const Gpu& gpu);

}  // namespace orrery::hardware
