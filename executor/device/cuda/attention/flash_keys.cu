// Fused attention, backward: gradients of keys and values.

#include "executor/device/cuda/attention/flash_backward.hpp"
#include "executor/device/cuda/attention/flash_products.hpp"
#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

namespace {

/// 128 keys. With 128 columns eight warps hold 16 keys each, as dK and dV fill half of all
/// registers; with 64 columns four warps hold 32 each, and a multiprocessor runs two blocks.
template <int Dim>
struct KeyTile {
  static constexpr int m = Dim == 64 ? 2 : 1, n = Dim == 64 ? 4 : 8;
  static constexpr int threads = Dim == 64 ? 128 : 256, keys = 128, queries = 8 * n;
  static constexpr int key_bytes = keys * row_bytes<Dim>, query_bytes = queries * row_bytes<Dim>;
  static constexpr int statistic_bytes = queries * static_cast<int>(sizeof(Statistic));
  static constexpr int stage_bytes = 2 * query_bytes + statistic_bytes;
  static constexpr int shared_bytes = 2 * key_bytes + 2 * stage_bytes;
  static constexpr int blocks = Dim == 64 ? 2 : 1;
};

/// Starts the copies of one stage of the loop over queries: the queries, the gradients of their
/// outputs, and their statistics.
template <int Dim, class T>
__device__ void fetch_queries(const BackwardOperands<T>& x, SharedAddress stage, int sequence,
                              int head, int query) {
  using Tile = KeyTile<Dim>;
  fetch<Dim, Tile::queries, Tile::threads>(stage, x.sizes.queries(x.qkv, sequence, head), query);
  fetch<Dim, Tile::queries, Tile::threads>(stage + Tile::query_bytes,
                                           x.sizes.context(x.d_out, sequence, head), query);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < Tile::statistic_bytes / chunk_bytes) {
    const std::int64_t of_head = static_cast<std::int64_t>(sequence) * x.sizes.heads + head;
    copy_in_background(stage + 2 * Tile::query_bytes + thread * chunk_bytes,
                       x.statistics + of_head * x.rows + query + 2 * thread, true);
  }
  end_copies();
}

/// Calls f(m, n, i, statistic) for every element of a product whose columns are queries.
template <int M, int N, class F>
__device__ void with_statistics(SharedAddress statistics, const F& f) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    std::uint32_t two[4];  // statistics, of the lane's two columns
    const int column = 8 * n + lane_of_warp() % 4 * 2;
    load_shared(two, statistics + column * static_cast<int>(sizeof(Statistic)));
#pragma unroll
    for (int i = 0; i < 4 * M; ++i) {
      f(i / 4, n, i % 4,
        Statistic{__uint_as_float(two[i % 2 * 2]), __uint_as_float(two[i % 2 * 2 + 1])});
    }
  }
}

/// Gradients of a warp's keys and values, summed over tiles of queries.
template <class T, int Dim>
struct KeySums {
  using Tile = KeyTile<Dim>;
  float keys[Tile::m][Dim / 8][4] = {}, values[Tile::m][Dim / 8][4] = {};

  /// Adds one stage; `hide_scores(scores)` masks keys that its queries do not see.
  template <class Hide>
  __device__ void add(SharedAddress my_keys, SharedAddress my_values, SharedAddress stage,
                      float scale, const Hide& hide_scores) {
    const SharedAddress d_out = stage + Tile::query_bytes, statistics = d_out + Tile::query_bytes;
    float weights[Tile::m][Tile::n][4] = {};
    multiply_tiles<T, Dim>(weights, my_keys, stage);
    hide_scores(weights);
    with_statistics<Tile::m, Tile::n>(statistics, [&](int m, int n, int i, Statistic of) {
      weights[m][n][i] = power_of_two(weights[m][n][i] * scale - of.log_sum);
    });
    multiply_kept<T, Dim>(values, weights, d_out);
    float d_weights[Tile::m][Tile::n][4] = {};
    multiply_tiles<T, Dim>(d_weights, my_values, d_out);
    with_statistics<Tile::m, Tile::n>(statistics, [&](int m, int n, int i, Statistic of) {
      d_weights[m][n][i] = weights[m][n][i] * (d_weights[m][n][i] - of.product);
    });
    multiply_kept<T, Dim>(keys, d_weights, stage);
  }
};

template <class T, int Dim>
__global__ void __launch_bounds__(KeyTile<Dim>::threads, KeyTile<Dim>::blocks)
    key_gradients(BackwardOperands<T> x, Order order) {
  using Tile = KeyTile<Dim>;
  const AttentionSizes& sizes = x.sizes;
  const Order::Piece piece = order.of(static_cast<int>(blockIdx.x));
  const int sequence = piece.head / sizes.kv_heads, kv_head = piece.head % sizes.kv_heads;
  const int first_key = piece.tile * Tile::keys;
  const FlashSpan keys{first_key, first_key + Tile::keys};
  const SharedAddress key_tile = shared_memory();
  const SharedAddress value_tile = key_tile + Tile::key_bytes;
  const SharedAddress stages = value_tile + Tile::key_bytes;
  const int warp_row = static_cast<int>(threadIdx.x / warp_lanes) * 16 * Tile::m;
  const SharedAddress mine = warp_row * row_bytes<Dim>;

  const FlashSpan attended_by = sizes.mask.queries_of(keys);
  const int first = attended_by.first / Tile::queries * Tile::queries;
  const int end = (kv_head + 1) * sizes.group();
  int head = kv_head * sizes.group(), query = first;
  fetch<Dim, Tile::keys, Tile::threads>(key_tile, sizes.keys(x.qkv, sequence, kv_head), first_key);
  fetch<Dim, Tile::keys, Tile::threads>(value_tile, sizes.values(x.qkv, sequence, kv_head),
                                        first_key);
  SharedAddress stage = stages, other = stages + Tile::stage_bytes;
  fetch_queries<Dim>(x, stage, sequence, head, query);

  KeySums<T, Dim> sums;
  while (head < end) {
    const int here = query;
    query += Tile::queries;
    if (query >= attended_by.last) {
      query = first;
      ++head;
    }
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and no thread still reads the other one
    if (head < end) fetch_queries<Dim>(x, other, sequence, head, query);
    sums.add(key_tile + mine, value_tile + mine, stage, sizes.power_scale, [&](auto& scores) {
      if (sizes.mask.all({here, here + Tile::queries}, keys)) return;
      hide(scores, first_key + warp_row, here, [&](int key) { return sizes.mask.queries_of(key); });
    });
    const SharedAddress done = stage;
    stage = other;
    other = done;
  }
  write_rows<T, Dim>(sums.keys, static_cast<float>(sizes.scale), key_tile + mine,
                     sizes.keys(x.d_qkv, sequence, kv_head), first_key + warp_row);
  write_rows<T, Dim>(sums.values, 1, value_tile + mine, sizes.values(x.d_qkv, sequence, kv_head),
                     first_key + warp_row);
}

}  // namespace

void flash_key_gradients(const Call& call) {
  with_tensor_cores(call, [&]<class T, int Dim>(Type<T>, std::integral_constant<int, Dim>) {
    const BackwardOperands<T> x{call};
    const AttentionSizes& sizes = x.sizes;
    using Tile = KeyTile<Dim>;
    const auto tiles = static_cast<int>(quotient_up(sizes.mask.seq, Tile::keys));
    const Order order = Order::of_heads(tiles, sizes.batch * sizes.kv_heads, 1,
                                        2LL * sizes.group() * sizes.mask.seq * row_bytes<Dim>);
    launch(key_gradients<T, Dim>, order.grid<Tile>(), call.stream, x, order);
  });
}

}  // namespace orrery::executor::cuda
