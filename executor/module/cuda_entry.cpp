#include "executor/module/gpu_module.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#include "executor/device/cuda/cuda_device.hpp"
#include "executor/device/cuda/errors.hpp"
#include "executor/device/cuda/versions.hpp"
#include "executor/errors.hpp"
#ifdef ORRERY_NCCL
#include "executor/fabric/nccl/nccl_fabric.hpp"
#endif

namespace orrery::executor {

namespace {

std::string visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? "not set" : fmt::format("'{}'", value);
}

/// The 16 bytes of a UUID in hexadecimal.
std::string text_of(const cudaUUID_t& unique) {
  std::string text;
  for (const char byte : unique.bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

/// "gemm bf16 to fp32 1 x 4096 x 4096 x 8192 nt: algorithm 66, tile 20, ...": cuBLASLt's numbers.
std::string line_of(const cuda::Gemms::Choice& of) {
  const models::GemmShape& s = of.shape;
  return fmt::format(
      "gemm {} to {} {} x {} x {} x {} {}{}: algorithm {}, tile {}, stages {}, split k {}, waves "
      "{:.2f}, workspace {} B",
      hardware::name(of.from), hardware::name(of.to), s.batch, s.m, s.n, s.k,
      s.transpose_a ? "t" : "n", s.transpose_b ? "t" : "n", of.algorithm, of.tile, of.stages,
      of.split_k, of.waves, of.workspace.count());
}

class LoadedCuda final : public GpuModule {
 public:
  std::string absence() const override {
    int count = 0, driver = 0, runtime = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (status == cudaSuccess && count > 0) return {};
    if (status == cudaSuccess || status == cudaErrorNoDevice) {
      return fmt::format("no GPU is visible (CUDA_VISIBLE_DEVICES is {})", visible_devices());
    }
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return "no NVIDIA driver is loaded here";
    if (status == cudaErrorInsufficientDriver) {
      return fmt::format("the NVIDIA driver supports CUDA {}, this orrery needs {}",
                         cuda::cuda_version_text(driver), cuda::cuda_version_text(runtime));
    }
    return fmt::format("CUDA does not start ({})", cudaGetErrorString(status));
  }

  std::vector<VisibleGpu> gpus() const override {
    int count = 0;
    cuda::check(cudaGetDeviceCount(&count), "looking for GPUs");
    std::vector<VisibleGpu> found;
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp of{};
      cuda::check(cudaGetDeviceProperties(&of, i), "querying a GPU");
      found.push_back({.name = of.name,
                       .unique = text_of(of.uuid),
                       .memory = Bytes{static_cast<std::int64_t>(of.totalGlobalMem)},
                       .capability = 10 * of.major + of.minor});
    }
    return found;
  }

  std::string versions() const override { return cuda::versions_text(); }

  std::unique_ptr<Device> make_device(int ordinal) const override {
    return std::make_unique<cuda::CudaDevice>(
        ordinal, cuda::attention_options(std::getenv("ORRERY_ATTENTION")));
  }

  std::vector<std::string> notes(const Device& device) const override {
    const auto& gpu = static_cast<const cuda::CudaDevice&>(device);
    std::vector<std::string> lines = gpu.attentions().notes();
    for (const auto& each : gpu.products().choices()) lines.push_back(line_of(each));
    for (std::string& each : gpu.products().grouped_choices()) lines.push_back(std::move(each));
    return lines;
  }

  FusedAttention attention(const Device& device) const override {
    return static_cast<const cuda::CudaDevice&>(device).attentions().use();
  }

#ifdef ORRERY_NCCL
  bool has_collectives() const override {
    return true;
  }
  std::unique_ptr<Fabric> make_fabric(Device& device, Store& store, int rank, int ranks,
                                      std::chrono::milliseconds patience) const override {
    auto& gpu = static_cast<cuda::CudaDevice&>(device);
    const auto stream = [&gpu](models::Lane queue) { return gpu.stream(queue); };
    return cuda::make_nccl_fabric({gpu, gpu.ordinal(), stream}, store, rank, ranks, patience);
  }
#else
  bool has_collectives() const override {
    return false;
  }
  std::unique_ptr<Fabric> make_fabric(Device&, Store&, int, int,
                                      std::chrono::milliseconds) const override {
    throw RunFailure{Exit::local_failure, "this orrery was built without NCCL"};
  }
#endif
};

}  // namespace

}  // namespace orrery::executor

extern "C" __attribute__((visibility("default"))) const orrery::executor::GpuModule*
orrery_cuda_module() {
#ifdef ORRERY_NCCL
  orrery::executor::cuda::prepare_for_nccl();
#endif
  static const orrery::executor::LoadedCuda module;
  return &module;
}
