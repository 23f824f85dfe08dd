#pragma once
// Block-scaled number formats, in which a block of 8-bit (mxfp8) or 4-bit (nvfp4) numbers shares a
// scale; the same on every device. Leaves out two-dimensional blocks, the random Hadamard transform
// and the stochastic rounding of nvfp4's recipe.
//
//          numbers  block  scale of a block                             scale of the tensor
//   mxfp8  e4m3     32     e8m0, the least 2^k with largest <= 448 2^k  none
//   nvfp4  e2m1     16     e4m3 of largest / 6 / tensor's               largest / (6 448), fp32
//
// e2m1 has 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; rounds to nearest, ties to the even
// code.
// Source  OCP Microscaling Formats (MX) 1.0, section 5; scales rounded up as NVIDIA Transformer
//         Engine's MXFP8BlockScaling; NVIDIA 2025, "Pretraining large language models with NVFP4",
//         arXiv 2509.25149

#include <array>
#include <cstdint>

#include "executor/device/fp8.hpp"
#include "hardware/dtype.hpp"

namespace orrery::executor {

enum class BlockFormat : std::uint8_t { mxfp8, nvfp4 };

constexpr BlockFormat block_format(hardware::DType numbers) {
  return numbers == hardware::DType::fp4 ? BlockFormat::nvfp4 : BlockFormat::mxfp8;
}
/// log2 of the number of elements in a block.
ORRERY_ANYWHERE constexpr int block_power(BlockFormat format) {
  return format == BlockFormat::nvfp4 ? 4 : 5;
}
ORRERY_ANYWHERE constexpr std::int64_t block_of(BlockFormat format) {
  return std::int64_t{1} << block_power(format);
}

/// Decodes one e2m1 code. Twice the magnitude of code c is c up to c = 4, then 6, 8 and 12.
ORRERY_ANYWHERE inline float decode_e2m1(std::uint8_t code) {
  const unsigned c = code & 7U;
  const unsigned twice = c <= 4 ? c : c == 7 ? 12 : 2 * c - 4;
  const float magnitude = 0.5F * static_cast<float>(twice);
  return (code & 8U) != 0 ? -magnitude : magnitude;
}
ORRERY_ANYWHERE inline std::uint8_t encode_e2m1(float value) {
  const auto bits = bits_as<std::uint32_t>(value);
  const float x = bits_as<float>(bits & 0x7fffffffU);
  const int code = static_cast<int>(x > 0.25F) + static_cast<int>(x >= 0.75F) +
                   static_cast<int>(x > 1.25F) + static_cast<int>(x >= 1.75F) +
                   static_cast<int>(x > 2.5F) + static_cast<int>(x >= 3.5F) +
                   static_cast<int>(x > 5);
  return static_cast<std::uint8_t>(static_cast<unsigned>(code) | (bits >> 31 << 3));
}

/// Decodes one e8m0 scale: 2^(code - 127), NaN for code 255. Code 0 gives a subnormal fp32.
ORRERY_ANYWHERE inline float decode_e8m0(std::uint8_t code) {
  if (code == 255) return bits_as<float>(0x7fc00000U);
  return bits_as<float>(code == 0 ? 1U << 22 : static_cast<std::uint32_t>(code) << 23);
}

/// nvfp4's fp32 scale of a whole tensor, from its largest magnitude; the scales of its blocks are
/// relative to it. 1 for a tensor of zeros.
ORRERY_ANYWHERE inline float tensor_scale(float largest) {
  return largest > 0 ? largest / (6.0F * 448.0F) : largest == 0 ? 1.0F : largest;
}

/// Code of a block's scale, from the largest magnitude in the block. In mxfp8 the exponent is that
/// of `largest` less 8, plus 1 if its mantissa exceeds 1.75, as 448 = 1.75 x 2^8.
ORRERY_ANYWHERE inline std::uint8_t block_scale(BlockFormat format, float largest,
                                                float of_tensor) {
  if (format == BlockFormat::nvfp4) return encode_fp8<E4m3>(largest / 6.0F / of_tensor);
  const auto bits = bits_as<std::uint32_t>(largest);
  if (bits >= 0x7f800000U) return 255;
  if (bits == 0) return 127;
  const int code =
      static_cast<int>(bits >> 23) - 8 + static_cast<int>((bits & 0x7fffffU) > 0x600000U);
  return static_cast<std::uint8_t>(code < 0 ? 0 : code);
}
ORRERY_ANYWHERE inline float decode_scale(BlockFormat format, std::uint8_t code, float of_tensor) {
  return format == BlockFormat::nvfp4 ? decode_fp8<E4m3>(code) * of_tensor : decode_e8m0(code);
}

/// Encodes one number of a block that has this scale; decodes one code of such a block.
ORRERY_ANYWHERE inline std::uint8_t block_code(BlockFormat format, float value, float scale) {
  const float scaled = scale > 0 ? value / scale : scale == 0 ? 0.0F : scale;
  return format == BlockFormat::nvfp4 ? encode_e2m1(scaled) : encode_fp8<E4m3>(scaled);
}
ORRERY_ANYWHERE inline float block_number(BlockFormat format, std::uint8_t code, float scale) {
  return (format == BlockFormat::nvfp4 ? decode_e2m1(code) : decode_fp8<E4m3>(code)) * scale;
}

/// Blocks run along the dimension that a GEMM sums over (k): within rows, or down columns.
enum class BlocksAlong : std::uint8_t { rows, columns };

/// Indices of one block's elements: `count` of them from `first` on, `step` apart.
struct BlockNumbers {
  std::int64_t first = 0, step = 1, count = 0;
};

/// Which elements of a tensor [matrices, rows, columns] share a scale. Scales are stored as
/// [matrices, rows, blocks of a row] if blocks run within rows, as [matrices, blocks of a column,
/// columns] if they run down columns.
struct ScaleBlocks {
  std::int64_t matrices = 0, rows = 0, columns = 0;
  int power = 0;  // log2 of the elements in a block
  bool inside = true;
  std::int64_t of_line = 0;  // blocks of a row, or of a column

  ScaleBlocks(const std::array<std::int64_t, 3>& shape, BlockFormat format, BlocksAlong way)
      : matrices{shape[0]},
        rows{shape[1]},
        columns{shape[2]},
        power{block_power(format)},
        inside{way == BlocksAlong::rows},
        of_line{((inside ? columns : rows) + block_of(format) - 1) >> power} {}

  ORRERY_ANYWHERE std::int64_t count() const {
    return matrices * (inside ? rows : columns) * of_line;
  }
  /// Indices of the elements that share the i-th scale.
  ORRERY_ANYWHERE BlockNumbers numbers(std::int64_t i) const {
    const std::int64_t across = inside ? of_line : columns;
    const std::int64_t line = i / across, place = i % across;  // row and column of the scale
    const std::int64_t block = inside ? place : line % of_line;
    const std::int64_t begin = block << power, rest = (inside ? columns : rows) - begin;
    const std::int64_t row = inside ? line : line / of_line * rows + begin;
    return {row * columns + (inside ? begin : place), inside ? 1 : columns,
            rest >> power > 0 ? std::int64_t{1} << power : rest};
  }
  /// An element's scale has the index line(row) + place(column); `row` counts over all matrices.
  ORRERY_ANYWHERE std::int64_t line(std::int64_t row) const {
    if (inside) return row * of_line;
    return (row / rows * of_line + (row % rows >> power)) * columns;
  }
  ORRERY_ANYWHERE std::int64_t place(std::int64_t column) const {
    return inside ? column >> power : column;
  }
};

}  // namespace orrery::executor
