#include "executor/device/cpu/block_scaled.hpp"

#include <algorithm>
#include <cmath>

#include "executor/device/fp8_operand.hpp"

namespace orrery::executor::cpu {

namespace {

/// Largest magnitude of a block; NaN if any of its numbers is NaN.
float largest_of(const float* numbers, const BlockNumbers& block) {
  float largest = 0;
  for (std::int64_t i = 0; i < block.count; ++i) {
    const float x = std::abs(numbers[block.first + i * block.step]);
    if (std::isnan(x)) return x;
    largest = std::max(largest, x);
  }
  return largest;
}

float largest_of(const float* numbers, std::int64_t count) {
  return largest_of(numbers, BlockNumbers{.count = count});
}

/// Stores and reads one code. Two 4-bit codes share a byte, the first in its lower half.
void put_code(BlockFormat format, std::uint8_t* codes, std::int64_t at, std::uint8_t code) {
  if (format == BlockFormat::mxfp8) {
    codes[at] = code;
    return;
  }
  std::uint8_t& both = codes[at / 2];
  const unsigned other = both & (at % 2 == 0 ? 0xf0U : 0x0fU);
  both = static_cast<std::uint8_t>(other | static_cast<unsigned>(code) << (at % 2 == 0 ? 0 : 4));
}
std::uint8_t code_at(BlockFormat format, const std::uint8_t* codes, std::int64_t at) {
  if (format == BlockFormat::mxfp8) return codes[at];
  return static_cast<std::uint8_t>((codes[at / 2] >> (at % 2 == 0 ? 0 : 4)) & 0xfU);
}

/// The tensor's fp32 scale; 1 for mxfp8, which has none.
float scale_of_tensor(BlockFormat format, const float* numbers, std::int64_t count) {
  return format == BlockFormat::mxfp8 ? 1.0F : tensor_scale(largest_of(numbers, count));
}

}  // namespace

void quantise_blocks(const float* numbers, const View& codes, const View& scales, BlocksAlong way) {
  const BlockFormat format = block_format(codes.dtype);
  const ScaleBlocks blocks{codes.shape, format, way};
  const float of_tensor = scale_of_tensor(format, numbers, codes.elements());
  *tensor_scale_of(scales) = of_tensor;
  auto* const stored = reinterpret_cast<std::uint8_t*>(codes.data);
  auto* const of_blocks = reinterpret_cast<std::uint8_t*>(scales.data);
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    const BlockNumbers block = blocks.numbers(b);
    of_blocks[b] = block_scale(format, largest_of(numbers, block), of_tensor);
    const float scale = decode_scale(format, of_blocks[b], of_tensor);
    for (std::int64_t i = 0; i < block.count; ++i) {
      const std::int64_t at = block.first + i * block.step;
      put_code(format, stored, at, block_code(format, numbers[at], scale));
    }
  }
}

void decode_blocks(const View& codes, const View& scales, BlocksAlong way, float* to) {
  const BlockFormat format = block_format(codes.dtype);
  const ScaleBlocks blocks{codes.shape, format, way};
  const float of_tensor = *tensor_scale_of(scales);
  const auto* const stored = reinterpret_cast<const std::uint8_t*>(codes.data);
  const auto* const of_blocks = reinterpret_cast<const std::uint8_t*>(scales.data);
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    const BlockNumbers block = blocks.numbers(b);
    const float scale = decode_scale(format, of_blocks[b], of_tensor);
    for (std::int64_t i = 0; i < block.count; ++i) {
      const std::int64_t at = block.first + i * block.step;
      to[at] = block_number(format, code_at(format, stored, at), scale);
    }
  }
}

void round_to_blocks(float* numbers, const View& shaped, BlockFormat format, BlocksAlong way) {
  const ScaleBlocks blocks{shaped.shape, format, way};
  const float of_tensor = scale_of_tensor(format, numbers, shaped.elements());
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    const BlockNumbers block = blocks.numbers(b);
    const std::uint8_t code = block_scale(format, largest_of(numbers, block), of_tensor);
    const float scale = decode_scale(format, code, of_tensor);
    for (std::int64_t i = 0; i < block.count; ++i) {
      float& each = numbers[block.first + i * block.step];
      each = block_number(format, block_code(format, each, scale), scale);
    }
  }
}

}  // namespace orrery::executor::cpu
