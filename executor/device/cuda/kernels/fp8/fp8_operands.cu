// Prepares the operands of fp8 GEMMs: transposes and quantises them.

#include <cstring>

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/fp8_code.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/products/fp8_product.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;
using models::GemmShape;

/// Matrices are transposed in squares of 64, a thread taking 16 bytes of a row and then of a
/// column.
constexpr int tile_width = 64, tile_words = 17;  // words of a row; one more than its bytes need

/// The shape of a matrix to transpose: rows and columns are multiples of 16.
struct Transposition {
  std::int64_t rows, columns;

  Grid grid() const {
    return {{static_cast<unsigned>(quotient_up(columns, tile_width)),
             static_cast<unsigned>(quotient_up(rows, tile_width))},
            block_threads};
  }
};

/// to[column][row] = codes of from[row][column]; `read(index)` gives 16 codes of a row.
template <class Read>
__device__ void transpose(const Transposition& of, const Read& read, std::uint8_t* to) {
  __shared__ std::uint32_t square[tile_width * tile_words];
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(square);
  const auto line = static_cast<int>(threadIdx.x / 4), part = static_cast<int>(threadIdx.x % 4);
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * tile_width;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * tile_width;
  const std::int64_t row = first_row + line, column = first_column + part * 16;
  if (row < of.rows && column < of.columns) {
    const Codes codes = read(row * of.columns + column);
    std::uint32_t words[4];
    memcpy(words, codes.of, sizeof words);
#pragma unroll
    for (int i = 0; i < 4; ++i) square[line * tile_words + part * 4 + i] = words[i];
  }
  __syncthreads();
  const std::int64_t transposed = first_column + line, begin = first_row + part * 16;
  if (transposed >= of.columns || begin >= of.rows) return;
  Codes codes;
#pragma unroll
  for (int i = 0; i < 16; ++i) codes.of[i] = bytes[(part * 16 + i) * tile_words * 4 + line];
  store(codes, to, transposed * of.rows + begin, of.rows * of.columns, true);
}

__global__ void __launch_bounds__(block_threads)
    transpose_codes(const std::uint8_t* from, Transposition of, std::uint8_t* to) {
  const std::int64_t count = of.rows * of.columns;
  transpose(
      of, [=](std::int64_t first) { return load<16>(from, first, count, true); }, to);
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    transpose_quantised(const Bf16* from, Transposition of, Magnitudes magnitudes, std::uint8_t* to,
                        float* inverse, bool aligned) {
  transpose(of, Quantiser<F>{from, of.rows * of.columns, magnitudes, inverse, aligned}, to);
}

/// to[row] += inverse x the sum of the row's codes; one block a row.
template <class F, class G>
__global__ void __launch_bounds__(block_threads)
    add_rows(const std::uint8_t* codes, std::int64_t columns, const float* inverse, G* to) {
  float sum = 0;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * columns;
  for (std::int64_t at = threadIdx.x * 16; at < columns; at += block_threads * 16) {
    const Codes pack = load<16>(codes + first, at, columns, true);
#pragma unroll
    for (int j = 0; j < 16; ++j) sum += of_code<F>(pack.of[j]);
  }
  sum = of_group(sum, block_threads, Sum{});
  if (threadIdx.x != 0) return;
  to[blockIdx.x] = from_float<G>(to_float(to[blockIdx.x]) + sum * *inverse);
}

bool transposes(const GemmShape& shape, std::size_t operand) {
  return operand == 0 ? shape.transpose_a : !shape.transpose_b;
}
std::int64_t elements_of(const GemmShape& shape, std::size_t operand) {
  return (operand == 0 ? shape.m : shape.n) * shape.k;
}

void transpose_stored(const View& from, const Transposition& of, std::uint8_t* to, Stream stream) {
  launch(transpose_codes, of.grid(), stream, reinterpret_cast<const std::uint8_t*>(from.data), of,
         to);
}

void quantise_transposed(const View& from, const Magnitudes& magnitudes, const Transposition& of,
                         const Fp8Operand& to, Stream stream) {
  const auto* numbers = reinterpret_cast<const Bf16*>(from.data);
  auto* codes = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(to.codes));
  with_fp8_format(to.format, [&](auto format) {
    launch(transpose_quantised<decltype(format)>, of.grid(), stream, numbers, of, magnitudes, codes,
           const_cast<float*>(to.inverse), on_16_bytes(numbers));
  });
}

/// One operand, prepared in `scratch` unless it can be used as it is.
Fp8Operand prepared(const Kernel& product, std::size_t i, Stream stream, std::byte* scratch) {
  const models::Operation& op = *product.operation;
  const View& from = product.reads[i];
  const std::int64_t count = elements_of(op.gemm(), i);
  const bool transposed = transposes(op.gemm(), i);
  const std::int64_t rows = transposed ? op.gemm().k : count / op.gemm().k;
  const Transposition transposition{rows, count / rows};
  const Fp8 format = fp8_read(op, i);
  if (from.dtype == DType::fp8) {
    const float* inverse = fp8_inverse_scale(from);
    if (!transposed) return {from.data, inverse, format};
    transpose_stored(from, transposition, reinterpret_cast<std::uint8_t*>(scratch), stream);
    return {scratch, inverse, format};
  }
  std::byte* const rest = scratch + piece(count);
  auto* inverse = reinterpret_cast<float*>(rest);
  const Fp8Operand made{scratch, inverse, format};
  const Magnitudes magnitudes = find_magnitudes(from, stream, rest + piece(sizeof(float)));
  if (transposed) {
    quantise_transposed(from, magnitudes, transposition, made, stream);
  } else {
    quantise(from, magnitudes, format, scratch, inverse, stream);
  }
  return made;
}

/// Scratch for one operand, as if it had to be both transposed and quantised.
std::int64_t operand_scratch(const GemmShape& shape, std::size_t operand) {
  const std::int64_t count = elements_of(shape, operand);
  return piece(count) + piece(sizeof(float)) + piece(magnitudes_bytes(count));
}

}  // namespace

std::int64_t fp8_product_scratch(const models::Operation& product) {
  return operand_scratch(product.gemm(), 0) + operand_scratch(product.gemm(), 1);
}

Fp8Operands fp8_operands(const Kernel& product, Stream stream, std::byte* scratch) {
  const std::int64_t first = operand_scratch(product.operation->gemm(), 0);
  return {prepared(product, 0, stream, scratch), prepared(product, 1, stream, scratch + first)};
}

void fp8_bias_gradient(const Kernel& product, const Fp8Operands& operands, Stream stream) {
  const GemmShape& s = product.operation->gemm();
  const View& to = product.writes[1];
  const auto* codes = reinterpret_cast<const std::uint8_t*>(operands.b.codes);
  with_fp8_format(operands.b.format, [&](auto format) {
    using F = decltype(format);
    const auto add = [&](auto* gradient) {
      launch(add_rows<F, std::remove_pointer_t<decltype(gradient)>>,
             {static_cast<unsigned>(s.n), block_threads}, stream, codes, s.k, operands.b.inverse,
             gradient);
    };
    if (to.dtype == DType::fp32) return add(reinterpret_cast<float*>(to.data));
    ensure(to.dtype == DType::bf16, "a GPU kernel was given a format that it refuses");
    add(reinterpret_cast<Bf16*>(to.data));
  });
}

}  // namespace orrery::executor::cuda
