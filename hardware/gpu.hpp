#pragma once
// One accelerator: what its datasheet says, what nvidia-smi prints, and the curves that were
// measured on it. Leaves out clocks and power over time.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hardware/curve.hpp"
#include "hardware/dtype.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

enum class Generation : std::uint8_t { volta, ampere, ada, hopper, blackwell, cdna2, cdna3, cpu, other };

struct Gpu {
  std::string name;  // "a100-sxm-80gb"
  std::string vendor;
  Generation generation = Generation::other;
  std::array<std::optional<FlopRate>, dtype_count> dense_peak;  // no sparsity
  Bandwidth memory_bandwidth{};
  Bytes memory{};  // usable, as nvidia-smi prints it
  Bandwidth scale_up{};  // NVLink or xGMI, per GPU and direction; 0 without
  Bandwidth host_link{};  // PCIe or C2C, per direction
  Power board_power{};
  std::map<DType, GemmCurve> gemm;
  std::map<std::string, AttentionCurve> attention;  // by kernel: "flash-2", "cudnn", ...
  MemoryCurve memory_bound;
  int unconfirmed = 0;  // numbers whose source is "unconfirmed"

  /// Dense peak of a format; nothing if the GPU cannot compute in it.
  std::optional<FlopRate> peak(DType type) const {
    return dense_peak[static_cast<std::size_t>(type)];
  }
};

}  // namespace orrery::hardware
