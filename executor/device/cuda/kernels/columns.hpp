#pragma once
// Column sums of a matrix (over its rows), always in the same order.

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

/// Does a sum replace what is there (fresh), or is it added to that?
enum class SumInto : std::uint8_t { fresh, added };

/// Packs across a tile. Where there are many rows, tiles are narrow, so that there are enough
/// blocks.
inline constexpr unsigned wide_tile = 32, narrow_tile = 8;

/// A matrix [rows, n], split into chunks of rows, each with its own row of sums; a tile of columns
/// is `across` packs wide.
struct ColumnSums {
  std::int64_t rows = 0, n = 0, rows_per_chunk = 0;
  unsigned across = wide_tile;
  SumInto into = SumInto::fresh;
  const float* factor = nullptr;  // on the GPU; multiplies sums before they are added
};

/// A block sums one tile of columns of one chunk: threads of a column take every
/// (block_threads / across)-th row, and add up in shared memory.
template <class From, class To>
__global__ void __launch_bounds__(block_threads)
    sum_tile(const From* from, To* to, ColumnSums sums, bool aligned) {
  using C = Compute<From>;
  constexpr int width = per_access<From>;
  __shared__ C tile[block_threads * width];
  const unsigned down = block_threads / sums.across;
  const unsigned column = threadIdx.x % sums.across, row = threadIdx.x / sums.across;
  const std::int64_t tile_first = static_cast<std::int64_t>(blockIdx.x) * sums.across * width;
  const std::int64_t first = tile_first + column * width;
  const std::int64_t begin = blockIdx.y * sums.rows_per_chunk;
  const std::int64_t end = smaller(begin + sums.rows_per_chunk, sums.rows);
  C sum[width] = {};
  if (first < sums.n) {
#pragma unroll 4
    for (std::int64_t i = begin + row; i < end; i += down) {
      const auto pack = load<width>(from + i * sums.n, first, sums.n, aligned);
#pragma unroll
      for (int j = 0; j < width; ++j) sum[j] += widen_to<C>(pack.of[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < width; ++j) tile[threadIdx.x * width + j] = sum[j];
  __syncthreads();
  const unsigned columns = sums.across * width;
  for (unsigned c = threadIdx.x; c < columns && tile_first + c < sums.n; c += block_threads) {
    C total{};
    for (unsigned i = 0; i < down; ++i) total += tile[i * columns + c];
    if (sums.factor != nullptr) total *= *sums.factor;
    To& out = to[blockIdx.y * sums.n + tile_first + c];
    if (sums.into == SumInto::added) total += widen_to<C>(out);
    out = from_float<To>(total);
  }
}

template <class From, class To>
void sum_columns(const From* from, To* to, const ColumnSums& sums, Stream stream) {
  constexpr int width = per_access<From>;
  const Grid grid{{static_cast<unsigned>(quotient_up(sums.n, sums.across * width)),
                   static_cast<unsigned>(quotient_up(sums.rows, sums.rows_per_chunk))},
                  block_threads};
  launch(sum_tile<From, To>, grid, stream, from, to, sums,
         on_16_bytes(from) && sums.n % width == 0);
}

}  // namespace orrery::executor::cuda
