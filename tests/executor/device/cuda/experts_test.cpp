// Products of experts on a real GPU, by cuBLAS's one call or one product after another, against the
// processor. Emulated, a product is the processor's own, and there is nothing to compare.
#ifndef ORRERY_EMULATED

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/cuda/cuda_device.hpp"
#include "executor/device/half.hpp"
#include "models/operations/grouped.hpp"

namespace orrery::executor::cuda {
namespace {

using models::DType;
using models::ExpertsProduct;
using models::ExpertsShape;

/// Whole numbers from -4 to 4: products and sums of them are exact in fp32, and in bf16 as far as
/// 8 bits go.
std::vector<std::byte> stored(DType type, std::int64_t count, int seed) {
  const auto width = static_cast<std::size_t>(hardware::bits(type) / 8);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * width);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<float>((i * 5 + i / 7 + seed) % 9 - 4);
    std::byte* const to = bytes.data() + static_cast<std::size_t>(i) * width;
    if (width == 4) {
      reinterpret_cast<float&>(*to) = number;
    } else {
      narrow(number, reinterpret_cast<Bf16&>(*to));
    }
  }
  return bytes;
}

/// What the device leaves, run twice: the second time finds where the matrices lie.
std::vector<float> run(Device& device, const models::Block& block) {
  const models::Operation& op = block.operations.front();
  std::vector<View> views;
  for (std::size_t id = 0; id < block.operands.size(); ++id) {
    const models::Operand& of = block.operands[id];
    const std::vector<std::byte> bytes = stored(of.dtype, of.elements(), static_cast<int>(id));
    views.push_back({device.allocate(of.bytes()), of.dtype, of.shape});
    device.write(bytes.data(), views.back().data, of.bytes());
  }
  const std::vector<View> reads{views[0], views[1]}, writes{views[2]};
  const Kernel kernel{.operation = &op, .reads = reads, .writes = writes, .place = {}, .adam = {}};
  for (int i = 0; i < 2; ++i) device.run(kernel);
  std::vector<std::byte> bytes(static_cast<std::size_t>(block.operands[2].bytes().count()));
  device.read(views[2].data, bytes.data(), block.operands[2].bytes());
  for (const View& each : views) device.release(each.data);
  std::vector<float> found;
  for (std::int64_t i = 0; i < block.operands[2].elements(); ++i) {
    const bool wide = block.operands[2].dtype == DType::fp32;
    found.push_back(wide ? reinterpret_cast<const float*>(bytes.data())[i]
                         : widened(reinterpret_cast<const Bf16*>(bytes.data())[i]));
  }
  return found;
}

}  // namespace

// The third expert has no rows: where its gradient is not added to, it is zero.
TEST_CASE("A GPU multiplies experts' rows as the processor does") {
  CudaDevice gpu{0};
  CpuDevice processor;
  for (const DType type : {DType::fp32, DType::bf16}) {
    const ExpertsShape shape{
        .rows = {40, 1, 0, 87}, .k = 64, .n = 96, .dtype = type, .gradient = DType::fp32};
    for (const auto which : {ExpertsProduct::forward, ExpertsProduct::input_gradient,
                             ExpertsProduct::weight_gradient}) {
      for (const bool accumulate : {false, true}) {
        models::Block block = experts_block(shape, which);
        block.operations[0].gemm.accumulate &= accumulate;
        INFO(hardware::name(type) << " " << block.name << (accumulate ? " added" : ""));
        CHECK(run(gpu, block) == run(processor, block));
      }
    }
  }
}

}  // namespace orrery::executor::cuda

#endif
