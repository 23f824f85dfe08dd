// Products of operands in 8 and 4 bits: quantised by the tensor (fp8) or by blocks (mxfp8, nvfp4),
// multiplied in fp32.

#include <algorithm>
#include <array>
#include <cmath>

#include "executor/device/cpu/block_scaled.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/cpu/fp8.hpp"
#include "executor/device/half.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using cpu::BlocksAlong;
using models::DType;

bool has_few_bits(const View& view) {
  return view.dtype == DType::fp8 || view.dtype == DType::fp4;
}

/// Along what of its operand a product sums, of which the first is 0.
BlocksAlong summed_along(const models::GemmShape& gemm, std::size_t operand) {
  const bool down_columns = operand == 0 ? gemm.transpose_a : !gemm.transpose_b;
  return down_columns ? BlocksAlong::columns : BlocksAlong::rows;
}

void widen(const View& from, float* to) {
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    switch (from.dtype) {
      case DType::bf16:
        to[i] = widened(reinterpret_cast<const Bf16*>(from.data)[i]);
        break;
      case DType::fp16:
        to[i] = widened(reinterpret_cast<const Fp16*>(from.data)[i]);
        break;
      default:
        to[i] = reinterpret_cast<const float*>(from.data)[i];
    }
  }
}

/// What a product reads: two matrices, scales of those that have them for blocks, and the rest.
struct FewBitReads {
  std::array<const View*, 2> scales{};
  std::array<View, cpu::most_operands> others{};  // the matrices first
  std::size_t count = 2;
  bool in_blocks = false;
  DType stored = DType::fp8;

  explicit FewBitReads(const Kernel& kernel) {
    std::size_t matrix = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      others[i] = kernel.reads[i];
      if (has_few_bits(others[i])) stored = others[i].dtype;
    }
    for (std::size_t i = 2; i < kernel.reads.size(); ++i) {
      if (kernel.reads[i].dtype != DType::uint8) {
        others[count++] = kernel.reads[i];
        continue;
      }
      while (!has_few_bits(kernel.reads[matrix])) ++matrix;
      scales[matrix++] = &kernel.reads[i];
      in_blocks = true;
    }
  }
};

}  // namespace

/// By the tensor, by its blocks both ways, or its largest magnitude alone.
void CpuDevice::quantise(const Kernel& kernel) {
  const View& source = kernel.reads[0];
  auto* const numbers = reinterpret_cast<float*>(room_for(source, 0, sizeof(float)));
  widen(source, numbers);
  const View& first = kernel.writes[0];
  if (!has_few_bits(first)) {
    float largest = 0;
    for (std::int64_t i = 0; i < source.elements(); ++i) {
      largest = std::max(largest, std::abs(numbers[i]));
    }
    *reinterpret_cast<float*>(first.data) = largest;
    return;
  }
  if (kernel.writes.size() == 1) {
    return cpu::quantise(numbers, first, fp8_written(*kernel.operation));
  }
  cpu::quantise_blocks(numbers, first, kernel.writes[1], BlocksAlong::rows);
  if (kernel.writes.size() == 2) return;
  cpu::quantise_blocks(numbers, kernel.writes[2], kernel.writes[3], BlocksAlong::columns);
}

/// Multiplies in fp32 what the operands' codes mean; a weight that is stored wider is rounded as if
/// it had been quantised.
void CpuDevice::run_in_few_bits(const Kernel& kernel) {
  const models::Operation& op = *kernel.operation;
  if (op.kind == models::OpKind::quantise) return quantise(kernel);
  ensure(models::is_product(op.kind), "the CPU was given an operation that it refuses");
  FewBitReads reads{kernel};
  for (std::size_t i = 0; i < 2; ++i) {
    const View from = reads.others[i];
    View& to = reads.others[i];
    to.dtype = DType::fp32;
    to.data = room_for(from, i, sizeof(float));
    auto* const numbers = reinterpret_cast<float*>(to.data);
    const BlocksAlong way = summed_along(op.gemm, i);
    if (reads.scales[i] != nullptr) {
      cpu::decode_blocks(from, *reads.scales[i], way, numbers);
    } else if (has_few_bits(from)) {
      cpu::decode(from, fp8_read(op, i), numbers);
    } else {
      widen(from, numbers);
      reads.in_blocks ? cpu::round_to_blocks(numbers, from, block_format(reads.stored), way)
                      : cpu::round_to_fp8(numbers, from.elements(), fp8_read(op, i));
    }
  }
  models::Operation plain = op;
  plain.dtype = DType::fp32;
  Kernel wide = kernel;
  wide.operation = &plain;
  wide.reads = {reads.others.data(), reads.count};
  CpuDevice::run(wide);
}

}  // namespace orrery::executor
