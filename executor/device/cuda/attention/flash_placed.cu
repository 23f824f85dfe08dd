// Fused attention where the tokens of a rank are not all of a sequence in order: packed documents,
// each of which sees itself alone, and ranks that share a sequence (models/operations/parts/context.cpp);
// or where values are not as wide as keys. Without tensor cores, for every format: a warp for each
// row of each head loops over all keys that are here. Slow and simple; computes what
// device/cpu/fused_attention.cpp does.

#include "executor/device/cuda/attention/flash_calls.hpp"
#include "executor/device/cuda/attention/spread_rows.hpp"
#include "executor/device/cuda/kernels/clear.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

using models::SequencePart;

/// Sizes of one call, and which query sees which key.
struct PlacedSizes {
  TokenPlaces tokens;
  std::int64_t length = 0;                 // tokens of a sequence, on each rank
  std::int64_t first = 0, last = 0;        // of these tokens, those with queries: [first, last)
  std::int64_t first_rank = 0, ranks = 1;  // of the context group, whose keys are here
  bool causal = true;
  std::int64_t window = 0;
  int batch = 0, heads = 0, kv_heads = 0, dim = 0, value = 0;
  double scale = 1;

  explicit PlacedSizes(const Call& call);

  __device__ int group() const { return heads / kv_heads; }
  __device__ std::int64_t place_of(std::int64_t rank, std::int64_t token) const {
    return tokens.attended == nullptr ? token : tokens.attended[rank * length + token];
  }
  __device__ std::int64_t own_place(std::int64_t token) const {
    return place_of(tokens.index, token);
  }
  __device__ bool attends(std::int64_t query, std::int64_t key) const {
    const bool whole = tokens.begins == nullptr;
    std::int64_t begin = whole ? 0 : tokens.begins[query];
    if (window > 0) begin = larger(begin, query - window + 1);
    const std::int64_t end = causal ? query + 1 : whole ? length : tokens.ends[query];
    return key >= begin && key < end;
  }
  /// Row of a key: those of all of one rank's sequences come before the next rank's.
  __device__ std::int64_t key_row(std::int64_t slot, std::int64_t b, std::int64_t token) const {
    return (slot * batch + b) * length + token;
  }
};

PlacedSizes::PlacedSizes(const Call& call) : tokens{call.tokens} {
  const models::Operation& op = call.operation();
  const models::AttentionShape& of = op.attention();
  const bool backward = op.kind == models::OpKind::attention_backward;
  const bool apart = call.kernel.reads.size() == (backward ? 5U : 2U);
  length = tokens.attended == nullptr ? of.seq : tokens.length;
  batch = static_cast<int>(call.in(0).shape[1] / length);
  heads = static_cast<int>(of.heads);
  kv_heads = static_cast<int>(of.kv_heads);
  dim = static_cast<int>(of.head_dim);
  value = static_cast<int>(of.value_width());
  scale = of.score_scale();
  window = of.window;
  causal = of.causal || apart;  // context parallelism cuts causal attention only
  first = op.sequence().queries == SequencePart::Queries::late ? length / 2 : 0;
  last = op.sequence().queries == SequencePart::Queries::early ? length / 2 : length;
  const bool passed = op.sequence().keys == SequencePart::Keys::passed;
  first_rank = passed ? (tokens.index + op.sequence().ahead) % tokens.ranks : tokens.index;
  if (op.sequence().keys != SequencePart::Keys::gathered) return;
  first_rank = 0;
  ranks = tokens.ranks;
}

/// Where keys and values, or their gradients, are: in an operand of their own, or after the
/// queries.
template <class T>
struct PlacedKeys {
  T* data;
  std::int64_t columns, key, value;  // of a row; the first of keys; the first of values

  PlacedKeys(T* at, const View& view, const View& qkv, const PlacedSizes& sizes)
      : data{at}, columns{view.shape[2]} {
    const bool behind = columns == qkv.shape[2];
    key = behind ? std::int64_t{sizes.heads} * sizes.dim : 0;
    value = key + std::int64_t{sizes.kv_heads} * sizes.dim;
  }
  __device__ T* keys(std::int64_t row, int kv_head, int dim) const {
    return data + row * columns + key + std::int64_t{kv_head} * dim;
  }
  __device__ T* values(std::int64_t row, int kv_head, int width) const {
    return data + row * columns + value + std::int64_t{kv_head} * width;
  }
};

template <class T, class E>
struct PlacedOperands {
  PlacedSizes sizes;
  const T* queries;
  std::int64_t columns;  // of the queries' rows
  PlacedKeys<const T> keys;
  const T *out, *d_out;
  const E* log_sums;
  T* d_queries;
  PlacedKeys<T> gradients;
};

/// The calling warp's row, among `count` tokens of `heads` heads of every sequence.
struct PlacedRow {
  std::int64_t sequence, token;
  int head;

  __device__ PlacedRow(std::int64_t count, int heads) {
    const std::int64_t warp = thread_of_grid() / warp_lanes;
    token = warp % count;
    head = static_cast<int>(warp / count % heads);
    sequence = warp / count / heads;
  }
};

template <class T, class E>
__global__ void placed_forward_row(PlacedSizes sizes, const T* queries, std::int64_t columns,
                                   PlacedKeys<const T> keys, T* out, E* log_sums) {
  using C = Compute<T>;
  PlacedRow mine{sizes.last - sizes.first, sizes.heads};
  if (mine.sequence >= sizes.batch) return;
  mine.token += sizes.first;
  const std::int64_t row = mine.sequence * sizes.length + mine.token;
  const std::int64_t place = sizes.own_place(mine.token);
  const int kv_head = mine.head / sizes.group();
  const auto query =
      spread<C>(queries + row * columns + std::int64_t{mine.head} * sizes.dim, sizes.dim);
  PlainSoftmax<C> softmax;
  for (std::int64_t slot = 0; slot < sizes.ranks; ++slot) {
    for (std::int64_t j = 0; j < sizes.length; ++j) {
      if (!sizes.attends(place, sizes.place_of(sizes.first_rank + slot, j))) continue;
      const std::int64_t at = sizes.key_row(slot, mine.sequence, j);
      const auto key = spread<C>(keys.keys(at, kv_head, sizes.dim), sizes.dim);
      softmax.add(product(query, key) * static_cast<C>(sizes.scale),
                  spread<C>(keys.values(at, kv_head, sizes.value), sizes.value));
    }
  }
  T* const to = out + (row * sizes.heads + mine.head) * sizes.value;
  gather(softmax.out, softmax.sum > 0 ? C(1) / softmax.sum : C(0), to, sizes.value);
  if (threadIdx.x % warp_lanes != 0) return;
  const std::int64_t sum = (mine.sequence * sizes.heads + mine.head) * sizes.length + mine.token;
  log_sums[sum] = static_cast<E>(softmax.sum > 0 ? softmax.log_sum() : -infinity<C>);
}

/// Of one query and one key: the weight p, and `slope`, scale p dO (V - O), by which the key is
/// added to the query's gradient and the query to the key's.
template <class C>
struct PlacedSlope {
  C weight, slope;
};

/// One query of one head, with its output, the output's gradient and its log-sum-exp.
template <class C>
struct PlacedQuery {
  SpreadRow<C> query, d_out;
  SpreadRow<C> out;
  C log_sum;

  template <class T, class E>
  __device__ PlacedQuery(const PlacedOperands<T, E>& x, std::int64_t sequence, std::int64_t token,
                         int head) {
    const PlacedSizes& sizes = x.sizes;
    const std::int64_t row = sequence * sizes.length + token;
    const std::int64_t of_value = (row * sizes.heads + head) * sizes.value;
    query = spread<C>(x.queries + row * x.columns + std::int64_t{head} * sizes.dim, sizes.dim);
    out = spread<C>(x.out + of_value, sizes.value);
    d_out = spread<C>(x.d_out + of_value, sizes.value);
    log_sum = static_cast<C>(x.log_sums[(sequence * sizes.heads + head) * sizes.length + token]);
  }
  __device__ PlacedSlope<C> meets(const SpreadRow<C>& key, SpreadRow<C> value, C scale) const {
    const C weight = exponential(product(query, key) * scale - log_sum);
    value.add(C(-1), out);
    return {weight, scale * weight * product(d_out, value)};
  }
};

template <class T, class E>
__global__ void placed_query_gradient(PlacedOperands<T, E> x) {
  using C = Compute<T>;
  const PlacedSizes& sizes = x.sizes;
  PlacedRow mine{sizes.last - sizes.first, sizes.heads};
  if (mine.sequence >= sizes.batch) return;
  mine.token += sizes.first;
  const int kv_head = mine.head / sizes.group();
  const std::int64_t place = sizes.own_place(mine.token);
  const PlacedQuery<C> own{x, mine.sequence, mine.token, mine.head};
  const std::int64_t row = mine.sequence * sizes.length + mine.token;
  T* const to = x.d_queries + row * x.columns + std::int64_t{mine.head} * sizes.dim;
  auto sum = spread<C>(to, sizes.dim);
  for (std::int64_t slot = 0; slot < sizes.ranks; ++slot) {
    for (std::int64_t j = 0; j < sizes.length; ++j) {
      if (!sizes.attends(place, sizes.place_of(sizes.first_rank + slot, j))) continue;
      const std::int64_t at = sizes.key_row(slot, mine.sequence, j);
      const auto key = spread<C>(x.keys.keys(at, kv_head, sizes.dim), sizes.dim);
      const auto value = spread<C>(x.keys.values(at, kv_head, sizes.value), sizes.value);
      sum.add(own.meets(key, value, static_cast<C>(sizes.scale)).slope, key);
    }
  }
  gather(sum, C(1), to, sizes.dim);
}

/// Gradients of a key and its value, summed over the queries of all heads that share it.
template <class T, class E>
__global__ void placed_key_gradient(PlacedOperands<T, E> x) {
  using C = Compute<T>;
  const PlacedSizes& sizes = x.sizes;
  const PlacedRow mine{sizes.ranks * sizes.length, sizes.kv_heads};
  if (mine.sequence >= sizes.batch) return;
  const Division of = divided(mine.token, sizes.length);
  const std::int64_t place = sizes.place_of(sizes.first_rank + of.quotient, of.remainder);
  const std::int64_t at = sizes.key_row(of.quotient, mine.sequence, of.remainder);
  const auto key = spread<C>(x.keys.keys(at, mine.head, sizes.dim), sizes.dim);
  const auto value = spread<C>(x.keys.values(at, mine.head, sizes.value), sizes.value);
  T* const to_key = x.gradients.keys(at, mine.head, sizes.dim);
  T* const to_value = x.gradients.values(at, mine.head, sizes.value);
  auto d_key = spread<C>(to_key, sizes.dim), d_value = spread<C>(to_value, sizes.value);
  for (int g = 0; g < sizes.group(); ++g) {
    for (std::int64_t i = sizes.first; i < sizes.last; ++i) {
      if (!sizes.attends(sizes.own_place(i), place)) continue;
      const PlacedQuery<C> asking{x, mine.sequence, i, mine.head * sizes.group() + g};
      const PlacedSlope<C> met = asking.meets(key, value, static_cast<C>(sizes.scale));
      d_key.add(met.slope, asking.query);
      d_value.add(met.weight, asking.d_out);
    }
  }
  gather(d_key, C(1), to_key, sizes.dim);
  gather(d_value, C(1), to_value, sizes.value);
}

Grid warps_of(std::int64_t rows, const PlacedSizes& sizes, int heads) {
  return warps_for(rows * heads * sizes.batch);
}

}  // namespace

void placed_forward(const Call& call) {
  const PlacedSizes sizes{call};
  const std::size_t keys = call.kernel.reads.size() - 1;  // a separate operand, or qkv
  with_wide_sums(
      call.in(0).dtype, call.out(1).dtype, "sums of attention in 16 bits",
      [&]<class T, class E>(Type<T>, Type<E>) {
        const PlacedKeys<const T> of{call.read<T>(keys), call.in(keys), call.in(0), sizes};
        launch(placed_forward_row<T, E>, warps_of(sizes.last - sizes.first, sizes, sizes.heads),
               call.stream, sizes, call.read<T>(0), call.in(0).shape[2], of, call.write<T>(0),
               call.write<E>(1));
      });
}

/// Gradients begin with zeros; late queries add to those that the early ones left.
void placed_backward(const Call& call) {
  const PlacedSizes sizes{call};
  const bool apart = call.kernel.reads.size() == 5;
  const std::size_t keys = apart ? 1 : 0, out = keys + 1, to = call.kernel.writes.size() - 1;
  const bool late = call.operation().sequence().queries == SequencePart::Queries::late;
  with_wide_sums(
      call.in(0).dtype, call.in(out + 1).dtype, "sums of attention in 16 bits",
      [&]<class T, class E>(Type<T>, Type<E>) {
        for (std::size_t i = 0; i <= to && !late; ++i) {
          clear(call.write<T>(i), call.out(i).elements(), call.stream);
        }
        const PlacedOperands<T, E> x{sizes,
                                     call.read<T>(0),
                                     call.in(0).shape[2],
                                     {call.read<T>(keys), call.in(keys), call.in(0), sizes},
                                     call.read<T>(out),
                                     call.read<T>(out + 2),
                                     call.read<E>(out + 1),
                                     call.write<T>(0),
                                     {call.write<T>(to), call.out(to), call.in(0), sizes}};
        launch(placed_query_gradient<T, E>, warps_of(sizes.last - sizes.first, sizes, sizes.heads),
               call.stream, x);
        launch(placed_key_gradient<T, E>,
               warps_of(sizes.ranks * sizes.length, sizes, sizes.kv_heads), call.stream, x);
      });
}

}  // namespace orrery::executor::cuda
