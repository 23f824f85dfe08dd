#pragma once
// Versions of the GPU's libraries and driver, recorded with each measurement.

#include <string>

namespace orrery::executor::cuda {

/// "CUDA 13.0, driver 580.65.06, cuBLASLt 13.1.0, NCCL 2.28.9": the libraries that are loaded.
std::string versions_text();

/// 13000 is "13.0", as CUDA counts its versions.
std::string cuda_version_text(int version);

}  // namespace orrery::executor::cuda
