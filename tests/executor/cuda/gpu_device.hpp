#pragma once
// A GPU for whole plans: a real one, or the host with the GPU's own kernels, whose matrix products
// are the processor's.

#include <memory>
#include <string>
#include <vector>

#ifdef ORRERY_EMULATED
#include "executor/cpu/cpu_device.hpp"
#include "executor/cuda/flash.hpp"
#include "executor/cuda/kernels.hpp"
#else
#include "executor/cuda/cuda_device.hpp"
#endif

namespace orrery::executor::cuda {

#ifdef ORRERY_EMULATED
class EmulatedDevice final : public CpuDevice {
 public:
  std::string description() const override { return "kernels of a GPU, emulated"; }

  std::string refusal(const models::Operation& op) const override {
    if (is_product(op)) return CpuDevice::refusal(op);
    return is_attention(op) ? attention_refusal(op) : kernel_refusal(op);
  }

  void run(const Kernel& kernel) override {
    const models::Operation& op = *kernel.operation;
    if (is_product(op)) return CpuDevice::run(kernel);
    const std::int64_t wanted = is_attention(op) ? attention_scratch_bytes(op)
                                                 : scratch_bytes(op, kernel.reads, kernel.writes);
    std::vector<Line> scratch(static_cast<std::size_t>(wanted) / sizeof(Line) + 1);
    auto* memory = reinterpret_cast<std::byte*>(scratch.data());
    is_attention(op) ? launch_attention(kernel, nullptr, memory)
                     : launch_kernel(kernel, nullptr, memory);
  }

 private:
  struct alignas(64) Line {
    std::byte of[64];
  };

  static bool is_product(const models::Operation& op) {
    return op.kind == models::OpKind::gemm || op.kind == models::OpKind::batched_gemm;
  }
  static bool is_attention(const models::Operation& op) {
    return op.kind == models::OpKind::attention || op.kind == models::OpKind::attention_backward;
  }
};

inline std::unique_ptr<Device> gpu_device() {
  return std::make_unique<EmulatedDevice>();
}
#else
inline std::unique_ptr<Device> gpu_device() {
  return std::make_unique<CudaDevice>(0);
}
#endif

}  // namespace orrery::executor::cuda
