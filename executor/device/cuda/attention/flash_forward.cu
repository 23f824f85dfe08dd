// Fused attention, forward: a block holds a tile of queries and loops over the keys that they see,
// from the last to the first. Values are copied while scores are computed, and the next keys while
// values are added up.

#include "executor/device/cuda/attention/flash_products.hpp"
#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

namespace {

/// Four warps of 32 queries: two rows of matrices share each load of keys. Sums and scores take 192
/// registers of a thread with 128 columns, two blocks on a multiprocessor; 128 registers with 64
/// columns, three blocks. Shared memory, 64 KiB and 32 KiB a block, has room for as many.
template <int Dim>
struct ForwardTile {
  static constexpr int m = 2, n = 8, threads = 128;
  static constexpr int queries = 128, keys = 8 * n;
  static constexpr int query_bytes = queries * row_bytes<Dim>, key_bytes = keys * row_bytes<Dim>;
  static constexpr int shared_bytes = query_bytes + 2 * key_bytes;
  static constexpr int blocks = Dim == 64 ? 3 : 2;
};

constexpr float ln_of_2 = 0.6931471805599453F;

/// The largest score of a row over the four lanes that hold it, or `than` if that is larger.
template <int N>
__device__ float largest_of_row(const float (&scores)[N][4], int half, float than) {
#pragma unroll
  for (int i = 0; i < 2 * N; ++i) than = fmaxf(than, scores[i / 2][2 * half + i % 2]);
  than = fmaxf(than, __shfl_xor_sync(whole_warp, than, 1));
  return fmaxf(than, __shfl_xor_sync(whole_warp, than, 2));
}

/// The online softmax of a warp's rows, over keys that arrive tile by tile.
/// Source  Milakov & Gimelshein 2018, arXiv 1805.02867
template <int M>
struct RunningSoftmax {
  float largest[M][2];  // score so far
  float sum[M][2];      // of this lane's weights

  __device__ RunningSoftmax() {
#pragma unroll
    for (int i = 0; i < 2 * M; ++i) {
      largest[i / 2][i % 2] = -INFINITY;
      sum[i / 2][i % 2] = 0;
    }
  }

  /// Turns scores into weights 2^(scale (score - largest)); scales `out` down to a new largest
  /// score.
  template <int N, int D>
  __device__ void add(float (&scores)[M][N][4], float (&out)[M][D][4], float scale) {
#pragma unroll
    for (int i = 0; i < 2 * M; ++i) {
      const int m = i / 2, half = i % 2;
      const float before = largest[m][half];
      largest[m][half] = largest_of_row(scores[m], half, before);
      // Weights of a row that has seen nothing yet are 2^-infinity, not NaN.
      const float base = largest[m][half] == -INFINITY ? 0 : largest[m][half] * scale;
      const float fade = power_of_two(before * scale - base);
      sum[m][half] *= fade;
#pragma unroll
      for (int j = 0; j < 2 * N; ++j) {
        float& weight = scores[m][j / 2][2 * half + j % 2];
        weight = power_of_two(weight * scale - base);
        sum[m][half] += weight;
      }
#pragma unroll
      for (int j = 0; j < 2 * D; ++j) out[m][j / 2][2 * half + j % 2] *= fade;
    }
  }

  /// Divides `out` by the sums; calls `report(row of the warp, log-sum-exp)` for each row.
  template <int D, class Report>
  __device__ void finish(float (&out)[M][D][4], float scale, const Report& report) {
#pragma unroll
    for (int i = 0; i < 2 * M; ++i) {
      const int m = i / 2, half = i % 2;
      float all = sum[m][half];
      all += __shfl_xor_sync(whole_warp, all, 1);
      all += __shfl_xor_sync(whole_warp, all, 2);
      const float share = 1 / all;
#pragma unroll
      for (int j = 0; j < 2 * D; ++j) out[m][j / 2][2 * half + j % 2] *= share;
      if (lane_of_warp() % 4 == 0) {
        report(16 * m + 8 * half + lane_of_warp() / 4,
               (largest[m][half] * scale + log2f(all)) * ln_of_2);
      }
    }
  }
};

template <class T, int Dim>
__global__ void __launch_bounds__(ForwardTile<Dim>::threads, ForwardTile<Dim>::blocks)
    forward_of_tile(AttentionSizes sizes, Order order, const T* qkv, T* out, float* lse) {
  using Tile = ForwardTile<Dim>;
  const Order::Piece piece = order.of(static_cast<int>(blockIdx.x));
  const int sequence = piece.head / sizes.heads, head = piece.head % sizes.heads;
  const int first_query = (order.tiles - 1 - piece.tile) * Tile::queries;
  const FlashSpan queries{first_query, first_query + Tile::queries};
  const auto of_keys = sizes.keys(qkv, sequence, head / sizes.group());
  const auto of_values = sizes.values(qkv, sequence, head / sizes.group());
  const SharedAddress query_tile = shared_memory();
  const SharedAddress key_tile = query_tile + Tile::query_bytes;
  const SharedAddress value_tile = key_tile + Tile::key_bytes;
  const int warp_row = static_cast<int>(threadIdx.x / warp_lanes) * 16 * Tile::m;
  const SharedAddress mine = query_tile + warp_row * row_bytes<Dim>;

  const FlashSpan seen = sizes.mask.keys_of(queries);
  const int first = seen.first / Tile::keys * Tile::keys;
  int key = (seen.last - 1) / Tile::keys * Tile::keys;
  fetch<Dim, Tile::queries, Tile::threads>(query_tile, sizes.queries(qkv, sequence, head),
                                           first_query);
  fetch<Dim, Tile::keys, Tile::threads>(key_tile, of_keys, key);
  end_copies();

  float sums[Tile::m][Dim / 8][4] = {};
  RunningSoftmax<Tile::m> softmax;
  for (; key >= first; key -= Tile::keys) {
    wait_for_copies();
    __syncthreads();  // keys have arrived, and no thread still reads the last values
    fetch<Dim, Tile::keys, Tile::threads>(value_tile, of_values, key);
    end_copies();
    float scores[Tile::m][Tile::n][4] = {};
    multiply_tiles<T, Dim>(scores, mine, key_tile);
    wait_for_copies();
    __syncthreads();  // values have arrived, and no thread still reads these keys
    if (key > first) fetch<Dim, Tile::keys, Tile::threads>(key_tile, of_keys, key - Tile::keys);
    end_copies();
    if (!sizes.mask.all(queries, {key, key + Tile::keys})) {
      hide(scores, first_query + warp_row, key, [&](int i) { return sizes.mask.keys_of(i); });
    }
    softmax.add(scores, sums, sizes.power_scale);
    multiply_kept<T, Dim>(sums, scores, value_tile);
  }

  const int row = first_query + warp_row;
  float* const of_rows = lse + piece.head * static_cast<std::int64_t>(sizes.mask.seq);
  softmax.finish(sums, sizes.power_scale, [&](int i, float value) {
    if (row + i < sizes.mask.seq) of_rows[row + i] = value;
  });
  write_rows<T, Dim>(sums, 1, mine, sizes.context(out, sequence, head), row);
}

}  // namespace

void flash_forward(const Call& call) {
  with_tensor_cores(call, [&]<class T, int Dim>(Type<T>, std::integral_constant<int, Dim>) {
    using Tile = ForwardTile<Dim>;
    const AttentionSizes sizes{call.operation().attention()};
    const auto tiles = static_cast<int>(quotient_up(sizes.mask.seq, Tile::queries));
    const Order order = Order::of_heads(tiles, sizes.batch * sizes.heads, sizes.group(),
                                        2LL * sizes.mask.seq * row_bytes<Dim>);
    launch(forward_of_tile<T, Dim>, order.grid<Tile>(), call.stream, sizes, order, call.read<T>(0),
           call.write<T>(0), call.write<float>(1));
  });
}

}  // namespace orrery::executor::cuda
