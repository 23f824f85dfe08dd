#pragma once
// A GPU for whole plans: a real one, or the host with the GPU's own kernels, whose matrix products
// are the processor's.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/device/cuda/products/biases.hpp"
#include "executor/device/cuda/products/block_product.hpp"
#include "executor/device/cuda/products/fp8_product.hpp"
#include "tests/executor/device/cuda/operand_numbers.hpp"
#ifdef ORRERY_EMULATED
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/cuda/attention/flash.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#else
#include "executor/device/cuda/cuda_device.hpp"
#endif

namespace orrery::executor::cuda {

#ifdef ORRERY_EMULATED
class EmulatedDevice final : public CpuDevice {
 public:
  std::string description() const override { return "kernels of a GPU, emulated"; }

  std::string refusal(const models::Operation& op) const override {
    if (is_fp8_product(op)) return fp8_product_refusal(op);
    if (is_gemm(op)) return CpuDevice::refusal(op);
    return is_attention(op) ? attention_refusal(op) : kernel_refusal(op);
  }

  void run(const Kernel& kernel) override {
    const models::Operation& op = *kernel.operation;
    if (is_gemm(op) && reads_blocks(kernel)) return run_block_product(kernel);
    if (is_fp8_product(op)) return run_fp8_product(kernel);
    if (op.kind == models::OpKind::grouped_gemm) return run_product(kernel, {}, nullptr);
    if (is_gemm(op)) return CpuDevice::run(kernel);
    const std::int64_t wanted =
        is_attention(op) ? attention_scratch_bytes(op) : scratch_bytes(op, kernel.reads);
    std::vector<Line> scratch = lines(wanted);
    auto* memory = reinterpret_cast<std::byte*>(scratch.data());
    is_attention(op) ? launch_attention(kernel, nullptr, memory)
                     : launch_kernel(kernel, nullptr, memory);
  }

 private:
  struct alignas(64) Line {
    std::byte of[64];
  };

  static std::vector<Line> lines(std::int64_t bytes) {
    return std::vector<Line>(static_cast<std::size_t>(bytes) / sizeof(Line) + 1);
  }

  /// In fp32, of the operands as the kernels decoded them.
  void run_block_product(const Kernel& kernel) {
    std::vector<Line> scratch = lines(block_product_scratch(kernel));
    const BlockOperands operands =
        block_operands(kernel, nullptr, reinterpret_cast<std::byte*>(scratch.data()));
    const DecodedProduct decoded{kernel, operands};
    std::vector<float> a = numbers_of(operands, 0), b = numbers_of(operands, 1);
    const View wide[] = {
        {reinterpret_cast<std::byte*>(a.data()), models::DType::fp32, operands.a.shape},
        {reinterpret_cast<std::byte*>(b.data()), models::DType::fp32, operands.b.shape}};
    run_product(decoded.kernel(), wide, operands.factors);
  }

  /// The processor's product, of other operands where some are given; kernels add the biases.
  void run_product(const Kernel& kernel, std::span<const View> operands, const float* factors) {
    models::Operation product = *kernel.operation;
    Kernel plain = kernel;
    plain.operation = &product;
    plain.reads = operands.empty() ? kernel.reads.first(2) : operands;
    if (!operands.empty()) product.dtype = models::DType::fp32;
    plain.writes = kernel.writes.first(1);
    CpuDevice::run(plain);
    std::vector<Line> sums = lines(bias_gradients_scratch(kernel, kernel.reads[1].dtype));
    add_biases(kernel, nullptr);
    add_bias_gradients(kernel, nullptr, reinterpret_cast<std::byte*>(sums.data()),
                       factors == nullptr ? nullptr : factors + 2);
  }

  /// In fp32, of the operands as the kernels transposed them: [m, k] x [n, k]'.
  void run_fp8_product(const Kernel& kernel) {
    models::Operation product = *kernel.operation;
    std::vector<Line> scratch = lines(fp8_product_scratch(product));
    const Fp8Operands operands =
        fp8_operands(kernel, nullptr, reinterpret_cast<std::byte*>(scratch.data()));
    const models::GemmShape& s = product.gemm();
    std::vector<float> a = numbers_of(operands.a, s.m * s.k), b = numbers_of(operands.b, s.n * s.k);
    product.dtype = models::DType::fp32;
    product.mutable_gemm().transpose_a = false;
    product.mutable_gemm().transpose_b = true;
    std::vector<View> reads{kernel.reads.begin(), kernel.reads.end()};
    reads[0] = {reinterpret_cast<std::byte*>(a.data()), models::DType::fp32, {1, s.m, s.k}};
    reads[1] = {reinterpret_cast<std::byte*>(b.data()), models::DType::fp32, {1, s.n, s.k}};
    Kernel plain = kernel;
    plain.operation = &product;
    plain.reads = reads;
    plain.writes = kernel.writes.first(1);
    CpuDevice::run(plain);
    if (kernel.writes.size() > 1) fp8_bias_gradient(kernel, operands, nullptr);
  }

  static bool is_fp8_product(const models::Operation& op) {
    return is_gemm(op) && op.dtype == models::DType::fp8;
  }
  static bool is_gemm(const models::Operation& op) { return models::is_gemm(op.kind); }
  static bool is_attention(const models::Operation& op) {
    return op.kind == models::OpKind::attention || op.kind == models::OpKind::attention_backward;
  }
};

inline std::unique_ptr<Device> gpu_device() {
  return std::make_unique<EmulatedDevice>();
}
#else
inline std::unique_ptr<Device> gpu_device() {
  return std::make_unique<CudaDevice>(0, AttentionOptions{.sums = SumOrder::fixed});
}
#endif

}  // namespace orrery::executor::cuda
