// Embedding and head: the table of tokens, and the loss over a shard of the vocabulary.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/rows.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr unsigned most_lanes = 1024;

/// The three numbers per row of `statistics`.
enum Statistic : int { largest_logit, exponentials, label_logit, statistic_count };

/// The token's row of the table, or zeros where another rank has it.
template <class T>
struct Embed {
  Packs packs;
  const std::int64_t* tokens;
  const T* table;
  std::int64_t first, held;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    constexpr int width = per_access<T>;
    const Division of = divided(i, packs.in_row);
    const std::int64_t row = tokens[of.quotient] - first, at = of.remainder * width;
    Pack<T, width> pack{};
    if (row >= 0 && row < held) {
      pack = load<width>(table + row * packs.n, at, packs.n, packs.aligned);
    }
    store(pack, out + of.quotient * packs.n, at, packs.n, packs.aligned);
  }
};

/// Sorts by counting: a token's place is how many come before it, smaller ones and equal ones
/// further ahead. One warp for each token, so this is quadratic: 0.02 ms of an H100 for 8,192
/// tokens, 1 ms for 65,536.
///   order[place] = the token's place in the batch
///   equal[place] = how many are equal to it, at the first of them; 0 at the others
__global__ void sort_tokens(const std::int64_t* tokens, std::int64_t count, std::int32_t* order,
                            std::int32_t* equal) {
  const std::int64_t i = thread_of_grid() / warp_lanes;
  if (i >= count) return;
  const unsigned lane = threadIdx.x % warp_lanes;
  const std::int64_t own = tokens[i];
  std::int32_t below = 0, ahead = 0, same = 0;
#pragma unroll 4
  for (std::int64_t j = lane; j < count; j += warp_lanes) {
    const std::int64_t other = tokens[j];
    below += other < own ? 1 : 0;
    same += other == own ? 1 : 0;
    ahead += other == own && j < i ? 1 : 0;
  }
  below = of_group(below, warp_lanes, Sum{});
  ahead = of_group(ahead, warp_lanes, Sum{});
  same = of_group(same, warp_lanes, Sum{});
  if (lane != 0) return;
  order[below + ahead] = static_cast<std::int32_t>(i);
  equal[below + ahead] = ahead == 0 ? same : 0;
}

template <class T, class G>
struct EmbedBackward {
  std::int64_t n, first, held;
  const std::int64_t* tokens;
  const std::int32_t* order;
  const std::int32_t* equal;
  const T* gradient;
  G* table;
  bool aligned;
};

/// table[token] += rows of that token, in their order. Blocks are places among the sorted tokens;
/// the first of equal ones sums them all.
template <class T, class G>
__global__ void sum_tokens(EmbedBackward<T, G> of) {
  using C = Compute<T>;
  constexpr int width = per_access<T>;
  const std::int32_t count = of.equal[blockIdx.x];
  const std::int32_t* rows = of.order + blockIdx.x;
  const std::int64_t row = of.tokens[*rows] - of.first;
  const std::int64_t at =
      (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * width;
  if (count == 0 || row < 0 || row >= of.held || at >= of.n) return;
  auto there = load<width>(of.table + row * of.n, at, of.n, of.aligned);
  C sum[width];
#pragma unroll
  for (int j = 0; j < width; ++j) sum[j] = widen_to<C>(there.of[j]);
#pragma unroll 4
  for (std::int32_t i = 0; i < count; ++i) {
    const auto pack = load<width>(of.gradient + rows[i] * of.n, at, of.n, of.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) sum[j] += widen_to<C>(pack.of[j]);
  }
#pragma unroll
  for (int j = 0; j < width; ++j) there.of[j] = from_float<G>(sum[j]);
  store(there, of.table + row * of.n, at, of.n, of.aligned);
}

/// The loss of rows of logits; columns from `real` on are padding of the vocabulary.
struct Shard {
  Rows rows;
  const std::int64_t* labels;
  std::int64_t first = 0;  // column, of the whole vocabulary
  int real = 0;

  __device__ RowPlace place() const {
    RowPlace place = rows.place(rows.of_group(blockIdx.x));
    place.end = smaller(place.end, real);
    return place;
  }
  /// This shard's column of a row's label, or -1.
  __device__ int label(std::int64_t row) const {
    const std::int64_t own = labels[row] - first;
    return own >= 0 && own < real ? static_cast<int>(own) : -1;
  }
};

/// exp(logit - largest) and the row's statistics over this rank's columns; padding takes no part.
template <class T, class E>
__global__ void __launch_bounds__(most_lanes)
    loss_rows(Shard shard, const T* logits, E* out, E* statistics) {
  using C = Compute<E>;
  constexpr int width = RowValues<T>::width;
  const std::int64_t row = shard.rows.of_group(blockIdx.x);
  const RowPlace place = shard.place();
  const auto real = [&](int column) { return column >= 0 && column < place.end; };
  const RowValues<T> x{logits, place};
  C largest = -infinity<C>;
  x.visit([&](int at, const auto& pack, int) {
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (real(at + j)) largest = larger(largest, widen_to<C>(pack.of[j]));
    }
  });
  largest = of_group(largest, place.lanes, Largest{});
  C sum{};
  x.visit([&](int at, const auto& pack, int) {
    Pack<E, width> raised{};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (!real(at + j)) continue;
      const C e = exponential(widen_to<C>(pack.of[j]) - largest);
      raised.of[j] = from_float<E>(e);
      sum += e;
    }
    store(raised, out + place.first, at, place.n, place.aligned);
  });
  sum = of_group(sum, place.lanes, Sum{});
  if (place.lane != 0 || row >= shard.rows.count) return;
  const int label = shard.label(row);
  E* of = statistics + row * statistic_count;
  of[largest_logit] = largest;
  of[exponentials] = sum;
  of[label_logit] = label < 0 ? -infinity<C> : widen_to<C>(logits[place.first + label]);
}

/// dlogit = (softmax - 1 at the label) / tokens of the global batch, from every shard's statistics:
///   softmax = e exp(m - M) / sum over shards s exp(m_s - M)
/// e, m    this shard's exponential and largest logit;  M  largest of all;  s  sums of exponentials
template <class E>
__device__ E factor_of(const E* statistics, std::int64_t rows, std::int64_t row,
                       std::int64_t shards, std::int64_t own) {
  const auto of = [&](std::int64_t shard, Statistic which) {
    return statistics[(shard * rows + row) * statistic_count + which];
  };
  E highest = of(0, largest_logit), sum{};
  for (std::int64_t s = 1; s < shards; ++s) highest = larger(highest, of(s, largest_logit));
  for (std::int64_t s = 0; s < shards; ++s) {
    sum += of(s, exponentials) * exponential(of(s, largest_logit) - highest);
  }
  return exponential(of(own, largest_logit) - highest) / sum;
}

template <class E, class T>
struct LossBackward {
  Shard shard;
  const E* raised;
  const E* statistics;
  std::int64_t shards, own;
  E scale;
  T* out;
};

template <class E, class T>
__global__ void __launch_bounds__(most_lanes) loss_backward_rows(LossBackward<E, T> of) {
  constexpr int width = RowValues<E>::width;
  const std::int64_t row = of.shard.rows.of_group(blockIdx.x);
  if (row >= of.shard.rows.count) return;
  const RowPlace place = of.shard.place();
  const RowValues<E> raised{of.raised, place};
  const E factor = factor_of(of.statistics, of.shard.rows.count, row, of.shards, of.own) * of.scale;
  const int label = of.shard.label(row);
  raised.visit([&](int at, const auto& pack, int) {
    Pack<T, width> slope{};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      E d = at + j < place.end ? pack.of[j] * factor : E{};
      if (at + j == label) d -= of.scale;
      slope.of[j] = from_float<T>(d);
    }
    store(slope, of.out + place.first, at, place.n, place.aligned);
  });
}

template <class T, class... Operands>
Shard shard_of(const Call& call, const RowShare& share, const Operands*... operands) {
  const std::int64_t n = call.in(0).shape[2];
  Shard shard;
  shard.rows = shifted_rows<T>(call.in(0).shape[1], n, operands...);
  shard.rows.lanes = share.lanes;
  shard.labels = call.read<std::int64_t>(1);
  shard.first = call.kernel.place.first_vocabulary;
  const std::int64_t vocabulary = call.kernel.operation->vocabulary;
  shard.real = static_cast<int>(std::clamp<std::int64_t>(vocabulary - shard.first, 0, n));
  return shard;
}

}  // namespace

void embedding(const Call& call) {
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  with_format(call.out(0).dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* table = call.read<T>(1);
    T* out = call.write<T>(0);
    const Packs packs{rows, n, per_access<T>, table, out};
    packs.launch(call.stream,
                 Embed<T>{packs, call.read<std::int64_t>(0), table,
                          call.kernel.place.first_vocabulary, call.in(1).shape[1], out});
  });
}

std::int64_t embedding_backward_scratch(const View& tokens) {
  return 2 * tokens.elements() * static_cast<std::int64_t>(sizeof(std::int32_t));
}

void embedding_backward(const Call& call) {
  const std::int64_t rows = call.in(1).shape[1], n = call.in(1).shape[2];
  const auto* tokens = call.read<std::int64_t>(0);
  auto* order = reinterpret_cast<std::int32_t*>(call.scratch);
  std::int32_t* equal = order + rows;
  const auto blocks = static_cast<unsigned>(quotient_up(rows * warp_lanes, block_threads));
  launch(sort_tokens, {blocks, block_threads}, call.stream, tokens, rows, order, equal);
  with_formats(call.in(1).dtype, call.out(0).dtype, [&](auto type, auto sums) {
    using T = typename decltype(type)::type;
    using G = typename decltype(sums)::type;
    constexpr int width = per_access<T>;
    const T* dy = call.read<T>(1);
    G* table = call.write<G>(0);
    const EmbedBackward<T, G> of{n,
                                 call.kernel.place.first_vocabulary,
                                 call.out(0).shape[1],
                                 tokens,
                                 order,
                                 equal,
                                 dy,
                                 table,
                                 on_16_bytes(dy, table) && n % width == 0};
    constexpr unsigned threads = 128;
    const Grid grid{
        {static_cast<unsigned>(rows), static_cast<unsigned>(quotient_up(n, threads * width))},
        threads};
    launch(sum_tokens<T, G>, grid, call.stream, of);
  });
}

void cross_entropy(const Call& call) {
  const std::int64_t n = call.in(0).shape[2];
  with_formats(call.in(0).dtype, call.out(0).dtype, [&](auto type, auto state) {
    using T = typename decltype(type)::type;
    using E = typename decltype(state)::type;
    if constexpr (sizeof(E) >= 4) {
      const T* logits = call.read<T>(0);
      E* out = call.write<E>(0);
      const RowShare share = share_of_rows(n, per_access<T>, most_lanes);
      const Shard shard = shard_of<T>(call, share, logits, out);
      launch(loss_rows<T, E>, {blocks_of(shard.rows.count, share), share.threads}, call.stream,
             shard, logits, out, call.write<E>(1));
    } else {
      throw ContractError{"exponentials of a loss in 16 bits"};
    }
  });
}

void cross_entropy_backward(const Call& call) {
  const std::int64_t n = call.in(0).shape[2];
  with_formats(call.out(0).dtype, call.in(0).dtype, [&](auto type, auto state) {
    using T = typename decltype(type)::type;
    using E = typename decltype(state)::type;
    if constexpr (sizeof(E) >= 4) {
      const RowShare share = share_of_rows(n, per_access<E>, most_lanes);
      LossBackward<E, T> of{};
      of.raised = call.read<E>(0);
      of.out = call.write<T>(0);
      of.shard = shard_of<E>(call, share, of.raised, of.out);
      of.statistics = call.read<E>(2);
      of.shards = call.in(2).shape[0];
      of.own = of.shard.first / n;
      of.scale = static_cast<E>(call.kernel.place.loss_scale);
      launch(loss_backward_rows<E, T>, {blocks_of(of.shard.rows.count, share), share.threads},
             call.stream, of);
    } else {
      throw ContractError{"exponentials of a loss in 16 bits"};
    }
  });
}

}  // namespace orrery::executor::cuda
