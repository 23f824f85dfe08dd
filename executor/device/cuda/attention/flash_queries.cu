// Fused attention, backward: gradients of queries.

#include "executor/device/cuda/attention/flash_backward.hpp"
#include "executor/device/cuda/attention/flash_products.hpp"
#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

namespace {

/// Four warps of 32 queries, as in forward. Few keys at a time, as Q and dO stay in shared memory:
/// with 128 columns 96 KiB a block, two on a multiprocessor of 228 KiB (one on A100's 164 KiB).
template <int Dim>
struct QueryTile {
  static constexpr int m = 2, n = 4, threads = 128, queries = 128, keys = 8 * n;
  static constexpr int query_bytes = queries * row_bytes<Dim>, key_bytes = keys * row_bytes<Dim>;
  static constexpr int stage_bytes = 2 * key_bytes;
  static constexpr int shared_bytes = 2 * query_bytes + 2 * stage_bytes;
  static constexpr int blocks = Dim == 64 ? 3 : 2;
};

/// The gradient of a warp's queries, summed over tiles of keys.
template <class T, int Dim>
struct QuerySums {
  using Tile = QueryTile<Dim>;
  float queries[Tile::m][Dim / 8][4] = {};
  Statistic of_row[Tile::m][2];

  __device__ explicit QuerySums(const Statistic* of_rows) {
#pragma unroll
    for (int i = 0; i < 2 * Tile::m; ++i) {
      of_row[i / 2][i % 2] = of_rows[8 * i + lane_of_warp() / 4];
    }
  }

  /// Adds one stage; `hide_scores(scores)` masks keys that the queries do not see.
  template <class Hide>
  __device__ void add(SharedAddress my_queries, SharedAddress my_d_out, SharedAddress stage,
                      float scale, const Hide& hide_scores) {
    float weights[Tile::m][Tile::n][4] = {}, d_weights[Tile::m][Tile::n][4] = {};
    multiply_tiles<T, Dim>(weights, my_queries, stage);
    hide_scores(weights);
    multiply_tiles<T, Dim>(d_weights, my_d_out, stage + Tile::key_bytes);
#pragma unroll
    for (int i = 0; i < 4 * Tile::m * Tile::n; ++i) {
      const int m = i / 4 / Tile::n, n = i / 4 % Tile::n, e = i % 4;
      const Statistic of = of_row[m][e / 2];
      const float weight = power_of_two(weights[m][n][e] * scale - of.log_sum);
      d_weights[m][n][e] = weight * (d_weights[m][n][e] - of.product);
    }
    multiply_kept<T, Dim>(queries, d_weights, stage);
  }
};

template <class T, int Dim>
__global__ void __launch_bounds__(QueryTile<Dim>::threads, QueryTile<Dim>::blocks)
    query_gradients(BackwardOperands<T> x, Order order) {
  using Tile = QueryTile<Dim>;
  const AttentionSizes& sizes = x.sizes;
  const Order::Piece piece = order.of(static_cast<int>(blockIdx.x));
  const int sequence = piece.head / sizes.heads, head = piece.head % sizes.heads;
  const int first_query = (order.tiles - 1 - piece.tile) * Tile::queries;
  const FlashSpan queries{first_query, first_query + Tile::queries};
  const SharedAddress query_tile = shared_memory();
  const SharedAddress d_out_tile = query_tile + Tile::query_bytes;
  const SharedAddress stages = d_out_tile + Tile::query_bytes;
  const int warp_row = static_cast<int>(threadIdx.x / warp_lanes) * 16 * Tile::m;
  const SharedAddress mine = warp_row * row_bytes<Dim>;

  const FlashSpan seen = sizes.mask.keys_of(queries);
  const auto of_keys = sizes.keys(x.qkv, sequence, head / sizes.group());
  const auto of_values = sizes.values(x.qkv, sequence, head / sizes.group());
  const auto begin = [&](SharedAddress stage, int key) {
    fetch<Dim, Tile::keys, Tile::threads>(stage, of_keys, key);
    fetch<Dim, Tile::keys, Tile::threads>(stage + Tile::key_bytes, of_values, key);
    end_copies();
  };
  fetch<Dim, Tile::queries, Tile::threads>(query_tile, sizes.queries(x.qkv, sequence, head),
                                           first_query);
  fetch<Dim, Tile::queries, Tile::threads>(d_out_tile, sizes.context(x.d_out, sequence, head),
                                           first_query);
  SharedAddress stage = stages, other = stages + Tile::stage_bytes;
  int key = seen.first / Tile::keys * Tile::keys;
  begin(stage, key);

  QuerySums<T, Dim> sums{x.statistics + piece.head * static_cast<std::int64_t>(x.rows) +
                         first_query + warp_row};
  for (; key < seen.last; key += Tile::keys) {
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and no thread still reads the other one
    if (key + Tile::keys < seen.last) begin(other, key + Tile::keys);
    sums.add(query_tile + mine, d_out_tile + mine, stage, sizes.power_scale, [&](auto& scores) {
      if (sizes.mask.all(queries, {key, key + Tile::keys})) return;
      hide(scores, first_query + warp_row, key, [&](int i) { return sizes.mask.keys_of(i); });
    });
    const SharedAddress done = stage;
    stage = other;
    other = done;
  }
  write_rows<T, Dim>(sums.queries, static_cast<float>(sizes.scale), query_tile + mine,
                     sizes.queries(x.d_qkv, sequence, head), first_query + warp_row);
}

}  // namespace

void flash_query_gradients(const Call& call) {
  with_tensor_cores(call, [&]<class T, int Dim>(Type<T>, std::integral_constant<int, Dim>) {
    const BackwardOperands<T> x{call};
    const AttentionSizes& sizes = x.sizes;
    using Tile = QueryTile<Dim>;
    const auto tiles = static_cast<int>(quotient_up(sizes.mask.seq, Tile::queries));
    const Order order = Order::of_heads(tiles, sizes.batch * sizes.heads, sizes.group(),
                                        2LL * sizes.mask.seq * row_bytes<Dim>);
    launch(query_gradients<T, Dim>, order.grid<Tile>(), call.stream, x, order);
  });
}

}  // namespace orrery::executor::cuda
