#include "executor/device/cuda/versions.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#ifdef ORRERY_NCCL
#include <nccl.h>
#endif

#include "executor/device/cuda/errors.hpp"

namespace orrery::executor::cuda {

namespace {

/// The driver's own version, which only NVML reports; NVML comes with the driver.
std::string driver_version() {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml == nullptr) return "unknown";
  const auto start = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
  const auto ask =
      reinterpret_cast<int (*)(char*, unsigned)>(dlsym(nvml, "nvmlSystemGetDriverVersion"));
  const auto stop = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlShutdown"));
  std::string version = "unknown";
  if (start != nullptr && ask != nullptr && stop != nullptr && start() == 0) {
    char text[80] = "";
    if (ask(text, sizeof text) == 0) version = text;
    stop();
  }
  dlclose(nvml);
  return version;
}

/// 130100 is "13.1.0", as cuBLAS counts since its version 11; 22809 is "2.28.9", as NCCL since 2.9.
std::string three_parts(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version / 10 % 100);
}

std::string versions_text() {
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "querying versions");
  std::string text = fmt::format("CUDA {}, driver {}, cuBLASLt {}", cuda_version_text(runtime),
                                 driver_version(), three_parts(cublasLtGetVersion()));
#ifdef ORRERY_NCCL
  int nccl = 0;
  if (ncclGetVersion(&nccl) == ncclSuccess) {
    text += ", NCCL " + three_parts(static_cast<std::size_t>(nccl));
  }
#endif
  return text;
}

}  // namespace orrery::executor::cuda
