// Matrix products on a real GPU, by cuBLASLt, against the processor, shape by shape as layers have
// them and as they do not. Emulated, a product is the processor's own, and there is nothing to
// compare.
#ifndef ORRERY_EMULATED

#include <catch2/catch.hpp>

#include "executor/run/weights/random.hpp"
#include "tests/executor/device/cuda/gpu_device.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::GemmShape;

/// Whole numbers from -2 to 2: products and sums of them are exact in every format's fp32 sums, and
/// in 16 bits as far as those go.
Fill whole(std::uint64_t stream) {
  return [random = RandomStream{7, stream}](std::int64_t i) {
    return static_cast<double>(random.bits(static_cast<std::uint64_t>(i)) % 5) - 2;
  };
}

Trial product(const GemmShape& s, DType arithmetic, DType from, DType to, bool bias) {
  Trial trial{OpKind::gemm, "product"};
  trial.operation.gemm = s;
  trial.operation.dtype = arithmetic;
  trial.read(from, s.transpose_a ? Shape{1, s.k, s.m} : Shape{1, s.m, s.k}, whole(1));
  trial.read(from, s.transpose_b ? Shape{1, s.n, s.k} : Shape{1, s.k, s.n}, whole(2));
  if (bias) trial.read(to, {1, 1, s.n}, whole(3));
  trial.write(to, {1, s.m, s.n}, s.accumulate ? whole(4) : Fill{});
  return trial;
}

struct Formats {
  DType arithmetic, from, to;
};
constexpr Formats formats[] = {
    {DType::bf16, DType::bf16, DType::bf16}, {DType::bf16, DType::bf16, DType::fp32},
    {DType::fp16, DType::fp16, DType::fp16}, {DType::fp16, DType::fp16, DType::fp32},
    {DType::fp32, DType::fp32, DType::fp32}, {DType::tf32, DType::fp32, DType::fp32},
    {DType::fp64, DType::fp64, DType::fp64}};

TEST_CASE(
    "A GPU's products are the processor's, transposed or not, added or not, with a bias or not") {
  const auto gpu = gpu_device();
  for (const auto& [arithmetic, from, to] : formats) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const bool accumulate : {false, true}) {
          const GemmShape shape{.m = 96,
                                .n = 64,
                                .k = 48,
                                .transpose_a = transpose_a,
                                .transpose_b = transpose_b,
                                .accumulate = accumulate};
          INFO(name(arithmetic) << " to " << name(to) << ", turned " << transpose_a << transpose_b
                                << ", added " << accumulate);
          product(shape, arithmetic, from, to, false).check_on(*gpu);
          if (!accumulate) product(shape, arithmetic, from, to, true).check_on(*gpu);
        }
      }
    }
  }
}

TEST_CASE("Products of sizes and addresses that no vector divides are the processor's") {
  const auto gpu = gpu_device();
  const GemmShape odd[] = {{.m = 1, .n = 1, .k = 1},
                           {.m = 33, .n = 17, .k = 29},
                           {.m = 5, .n = 50257 / 16, .k = 24},
                           {.m = 127, .n = 8, .k = 1},
                           {.m = 1, .n = 1000, .k = 333}};
  for (const auto& [arithmetic, from, to] : formats) {
    for (const GemmShape& shape : odd) {
      INFO(name(arithmetic) << " to " << name(to) << " [" << shape.m << ", " << shape.k << "] x ["
                            << shape.k << ", " << shape.n << "]");
      product(shape, arithmetic, from, to, false).check_on(*gpu);
      product(shape, arithmetic, from, to, true).check_on(*gpu);
      product(shape, arithmetic, from, to, false).askew(1).check_on(*gpu);
      product(shape, arithmetic, from, to, true).askew(3).check_on(*gpu);
    }
  }
}

}  // namespace
}  // namespace orrery::executor::cuda

#endif
