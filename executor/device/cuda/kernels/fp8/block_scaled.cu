// Encoding and decoding of block-scaled numbers: first one thread per block finds its scale, then
// one thread per eight consecutive numbers converts them, whichever way blocks run.

#include "executor/device/cuda/kernels/fp8/block_scaled.hpp"

#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/fp8_operand.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;

constexpr int at_once = 8;

__global__ void __launch_bounds__(block_threads)
    find_block_scales(const Bf16* from, ScaleBlocks blocks, BlockFormat format,
                      Magnitudes magnitudes, std::uint8_t* scales, float* tensor, bool aligned) {
  const bool whole = format == BlockFormat::nvfp4;
  const float of_tensor = whole ? tensor_scale(__uint_as_float(largest_of(magnitudes))) : 1.0F;
  const std::int64_t i = thread_of_grid();
  if (i == 0) *tensor = of_tensor;
  if (i >= blocks.count()) return;
  const BlockNumbers block = blocks.numbers(i);
  std::uint32_t largest = 0;
  const auto take = [&](Bf16 number) {
    largest = larger(largest, __float_as_uint(to_float(number)) & 0x7fffffffU);
  };
  if (blocks.inside) {
    for (std::int64_t j = 0; j < block.count; j += at_once) {
      const auto pack = load<at_once>(from, block.first + j, block.first + block.count, aligned);
#pragma unroll
      for (int x = 0; x < at_once; ++x) take(pack.of[x]);
    }
  } else {
    for (std::int64_t j = 0; j < block.count; ++j) take(from[block.first + j * block.step]);
  }
  scales[i] = block_scale(format, __uint_as_float(largest), of_tensor);
}

/// Finds the scales of numbers that are consecutive in memory.
struct ScaleReader {
  ScaleBlocks blocks;
  BlockFormat format;
  const std::uint8_t* scales;

  /// Calls f(j, its scale's code) for eight numbers from `first` on, or as many as there are.
  template <class F>
  __device__ void operator()(std::int64_t first, std::int64_t count, F f) const {
    const Division place = divided(first, blocks.columns);
    std::int64_t row = place.quotient, column = place.remainder, line = blocks.line(row);
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      if (first + j >= count) return;
      f(j, scales[line + blocks.place(column)]);
      if (++column < blocks.columns) continue;
      column = 0;
      line = blocks.line(++row);
    }
  }
};

/// Stores the codes of eight numbers; 4-bit codes are two in a byte, the first in its lower half.
__device__ inline void store_codes(const std::uint8_t (&codes)[at_once], BlockFormat format,
                                   std::uint8_t* to, std::int64_t first, std::int64_t count,
                                   bool aligned) {
  if (format == BlockFormat::mxfp8) {
    Pack<std::uint8_t, at_once> pack;
#pragma unroll
    for (int j = 0; j < at_once; ++j) pack.of[j] = codes[j];
    return store(pack, to, first, count, aligned);
  }
  Pack<std::uint8_t, at_once / 2> pack;
#pragma unroll
  for (int j = 0; j < at_once / 2; ++j) {
    pack.of[j] = static_cast<std::uint8_t>(codes[2 * j] | codes[2 * j + 1] << 4);
  }
  store(pack, to, first / 2, (count + 1) / 2, aligned);
}

struct Encode {
  ScaleReader scale_of;
  std::int64_t count;
  const Bf16* from;
  const float* tensor;
  std::uint8_t* to;
  bool aligned;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t first = i * at_once;
    const BlockFormat format = scale_of.format;
    const auto pack = load<at_once>(from, first, count, aligned);
    std::uint8_t codes[at_once]{};
    scale_of(first, count, [&](int j, std::uint8_t scale) {
      codes[j] = block_code(format, to_float(pack.of[j]), decode_scale(format, scale, *tensor));
    });
    store_codes(codes, format, to, first, count, aligned);
  }
};

/// Decodes a number without the tensor's scale; bf16 holds the result exactly.
__device__ inline Bf16 meant(BlockFormat format, std::uint8_t code, std::uint8_t scale) {
  return from_float<Bf16>(block_number(format, code, decode_scale(format, scale, 1)));
}

struct Decode {
  ScaleReader scale_of;
  std::int64_t count;
  const std::uint8_t* from;
  Bf16* to;
  bool aligned;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t first = i * at_once;
    const BlockFormat format = scale_of.format;
    Pack<Bf16, at_once> pack{};
    scale_of(first, count, [&](int j, std::uint8_t scale) {
      const std::int64_t at = first + j;
      const bool wide = format == BlockFormat::mxfp8;
      const unsigned both = from[wide ? at : at / 2];
      const unsigned code = wide ? both : (both >> (at % 2 == 0 ? 0 : 4)) & 0xfU;
      pack.of[j] = meant(format, static_cast<std::uint8_t>(code), scale);
    });
    store(pack, to, first, count, aligned);
  }
};

struct Round {
  ScaleReader scale_of;
  std::int64_t count;
  const Bf16* from;
  const float* tensor;
  Bf16* to;
  bool aligned;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t first = i * at_once;
    const BlockFormat format = scale_of.format;
    auto pack = load<at_once>(from, first, count, aligned);
    scale_of(first, count, [&](int j, std::uint8_t scale) {
      const float stored = decode_scale(format, scale, *tensor);
      pack.of[j] = meant(format, block_code(format, to_float(pack.of[j]), stored), scale);
    });
    store(pack, to, first, count, aligned);
  }
};

/// A bf16 tensor and its blocks.
struct Bf16Blocks {
  const Bf16* numbers;
  ScaleBlocks blocks;
  BlockFormat format;

  Bf16Blocks(const View& from, BlockFormat format_of, BlocksAlong way)
      : numbers{reinterpret_cast<const Bf16*>(from.data)},
        blocks{from.shape, format_of, way},
        format{format_of} {
    ensure(from.dtype == DType::bf16, "the GPU quantises only bf16");
  }

  ScaleReader find_scales(const Magnitudes& magnitudes, std::byte* to, float* tensor,
                          Stream stream) const {
    auto* scales = reinterpret_cast<std::uint8_t*>(to);
    const bool aligned = on_16_bytes(numbers) && blocks.columns % at_once == 0;
    launch(find_block_scales, threads_for(blocks.count()), stream, numbers, blocks, format,
           magnitudes, scales, tensor, aligned);
    return {blocks, format, scales};
  }
};

std::int64_t packs_of(const View& view) {
  return quotient_up(view.elements(), at_once);
}

}  // namespace

void quantise_blocks(const View& from, const Magnitudes& magnitudes, BlocksAlong way,
                     const InBlocks& to, Stream stream) {
  const Bf16Blocks source{from, block_format(to.codes.dtype), way};
  float* const tensor = tensor_scale_of(to.scales);
  const ScaleReader scales = source.find_scales(magnitudes, to.scales.data, tensor, stream);
  auto* codes = reinterpret_cast<std::uint8_t*>(to.codes.data);
  launch_for_each(packs_of(from), stream,
                  Encode{scales, from.elements(), source.numbers, tensor, codes,
                         on_16_bytes(source.numbers, codes)});
}

void decode_blocks(const InBlocks& from, BlocksAlong way, std::byte* to, Stream stream) {
  const BlockFormat format = block_format(from.codes.dtype);
  const ScaleReader scales{{from.codes.shape, format, way},
                           format,
                           reinterpret_cast<const std::uint8_t*>(from.scales.data)};
  auto* numbers = reinterpret_cast<Bf16*>(to);
  launch_for_each(
      packs_of(from.codes), stream,
      Decode{scales, from.codes.elements(), reinterpret_cast<const std::uint8_t*>(from.codes.data),
             numbers, on_16_bytes(numbers)});
}

// The block scales, the tensor's scale, and the partial results of the search for its magnitude.
std::int64_t rounding_bytes(const View& from, BlockFormat format, BlocksAlong way) {
  return piece(ScaleBlocks{from.shape, format, way}.count()) + piece(sizeof(float)) +
         piece(magnitudes_bytes(from.elements()));
}
const float* rounded_scale(const View& from, BlockFormat format, BlocksAlong way,
                           const std::byte* scales) {
  return reinterpret_cast<const float*>(scales +
                                        piece(ScaleBlocks{from.shape, format, way}.count()));
}

void round_to_blocks(const View& from, BlockFormat format, BlocksAlong way, std::byte* scales,
                     std::byte* to, Stream stream) {
  const Bf16Blocks source{from, format, way};
  auto* const tensor = const_cast<float*>(rounded_scale(from, format, way, scales));
  Magnitudes magnitudes;
  if (format == BlockFormat::nvfp4) {
    auto* const parts = reinterpret_cast<std::byte*>(tensor) + piece(sizeof(float));
    magnitudes = find_magnitudes(from, stream, parts);
  }
  const ScaleReader found = source.find_scales(magnitudes, scales, tensor, stream);
  auto* numbers = reinterpret_cast<Bf16*>(to);
  launch_for_each(packs_of(from), stream,
                  Round{found, from.elements(), source.numbers, tensor, numbers,
                        on_16_bytes(source.numbers, numbers)});
}

}  // namespace orrery::executor::cuda
