// Quantisation to 8 and 4 bits, with a scale per tensor (fp8) or per block (mxfp8, nvfp4), and
// GEMMs of such operands, which are multiplied in fp32.

#include <algorithm>
#include <array>
#include <cmath>

#include "executor/device/cpu/block_scaled.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/cpu/fp8.hpp"
#include "executor/device/formats.hpp"
#include "executor/device/low_precision.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

using models::DType;

/// Quantises per tensor, or per block along rows and, where asked for, down columns too; or finds
/// the largest magnitude alone.
void CpuDevice::quantise(const Kernel& kernel) {
  const View& source = kernel.reads[0];
  auto* const numbers = reinterpret_cast<float*>(room_for(source, 0, sizeof(float)));
  load(source, numbers);
  const View& first = kernel.writes[0];
  if (!is_low_precision(first)) {
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

/// Decodes the operands and multiplies them in fp32; a weight that is stored wider is rounded as if
/// it had been quantised.
void CpuDevice::run_in_low_precision(const Kernel& kernel) {
  const models::Operation& op = *kernel.operation;
  if (op.kind == models::OpKind::quantise) return quantise(kernel);
  ensure(models::is_gemm(op.kind), "the CPU was given an operation that it refuses");
  const LowPrecisionOperands reads{kernel.reads};
  std::array<View, 3> wide;
  for (std::size_t i = 0; i < 2; ++i) {
    const View& from = *reads.matrices[i];
    wide[i] = {room_for(from, i, sizeof(float)), DType::fp32, from.shape};
    auto* const numbers = reinterpret_cast<float*>(wide[i].data);
    const BlocksAlong way = summed_along(op.gemm(), i);
    if (reads.scales[i] != nullptr) {
      cpu::decode_blocks(from, *reads.scales[i], way, numbers);
    } else if (is_low_precision(from)) {
      cpu::decode(from, fp8_read(op, i), numbers);
    } else {
      load(from, numbers);
      reads.in_blocks() ? cpu::round_to_blocks(numbers, from, block_format(reads.stored), way)
                        : cpu::round_to_fp8(numbers, from.elements(), fp8_read(op, i));
    }
  }
  if (reads.bias != nullptr) wide[2] = *reads.bias;
  models::Operation plain = op;
  plain.dtype = DType::fp32;
  Kernel product = kernel;
  product.operation = &plain;
  product.reads = {wide.data(), reads.bias == nullptr ? 2U : 3U};
  CpuDevice::run(product);
}

}  // namespace orrery::executor
