#pragma once
// What operands stand for that the GPU's kernels made ready for a product.

#include <vector>

#include "executor/device/cuda/products/block_product.hpp"
#include "executor/device/cuda/products/fp8_product.hpp"
#include "executor/device/fp8.hpp"
#include "executor/device/half.hpp"
#include "tests/executor/device/cuda/device_array.hpp"

namespace orrery::executor::cuda {

/// What the GPU's codes of an operand stand for.
inline std::vector<float> numbers_of(const Fp8Operand& operand, std::int64_t count) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(count));
  float inverse = 0;
  copy_across(codes.data(), operand.codes, codes.size());
  copy_across(&inverse, operand.inverse, sizeof inverse);
  std::vector<float> numbers;
  for (const std::uint8_t each : codes) {
    const bool finer = operand.format == Fp8::e4m3;
    numbers.push_back((finer ? widened(E4m3{each}) : widened(E5m2{each})) * inverse);
  }
  return numbers;
}

/// What the operands of a product stand for that kernels decoded; the first with both tensors'
/// scales.
inline std::vector<float> numbers_of(const BlockOperands& operands, std::size_t which) {
  const View& from = which == 0 ? operands.a : operands.b;
  std::vector<Bf16> stored(static_cast<std::size_t>(from.elements()));
  float factor = 1;
  copy_across(stored.data(), from.data, stored.size() * sizeof(Bf16));
  if (which == 0 && operands.factors != nullptr) {
    copy_across(&factor, operands.factors, sizeof factor);
  }
  std::vector<float> numbers;
  for (const Bf16 each : stored) numbers.push_back(widened(each) * factor);
  return numbers;
}

}  // namespace orrery::executor::cuda
