#pragma once
// One accelerator: data-sheet numbers, usable memory as nvidia-smi prints it, and measured curves.
// Leaves out clocks and power over time, except for one sustained share.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/calibration.hpp"
#include "hardware/curve.hpp"
#include "hardware/dtype.hpp"
#include "hardware/generation.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

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

/// A curve that was not measured on this GPU and dtype.
struct FallbackNote {
  std::string sentence;    // "gemm bf16 curve of my-gpu is missing; that of h100-sxm-80gb is used"
  bool attention = false;  // of an attention kernel
  bool of_this_gpu = false;  // another dtype's curve of the same GPU is used: "that of its bf16"
};
std::vector<FallbackNote> fallback_notes(const Gpu& gpu);

}  // namespace orrery::hardware
