#pragma once
// orrery calibrate --backend cuda: the GPUs of this machine into a profile.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/quantity.hpp"

namespace orrery::scenarios {

struct GpuCalibration {
  Time budget{};
  std::optional<std::string> out;
  std::uint64_t seed = 1;
  std::int64_t widest = 16384;  // hidden size of the widest model measured
  bool json = false;
};

/// Returns the exit code. Errors  no GPU: as cuda_module; --out: OutputError
int calibrate_gpus(const GpuCalibration& wishes);

}  // namespace orrery::scenarios
