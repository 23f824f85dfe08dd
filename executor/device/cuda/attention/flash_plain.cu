// Fused attention without tensor cores, for fp32 and fp64: a warp for each row of each head loops
// over what the row sees. Slow and simple; computes what the tensor-core kernels do.

#include "executor/device/cuda/attention/flash_shape.hpp"
#include "executor/device/cuda/attention/spread_rows.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

template <class T>
__device__ SpreadRow<T> read_row(const HeadRows<const T>& rows, int row) {
  return spread<T>(rows.row(row), rows.width);
}

template <class T>
__device__ void write_row(const SpreadRow<T>& x, T factor, const HeadRows<T>& rows, int row) {
  gather(x, factor, rows.row(row), rows.width);
}

/// The row of the calling warp.
struct PlainRow {
  int sequence, head, row;

  __device__ PlainRow(const AttentionSizes& sizes, int heads) {
    const std::int64_t warp = thread_of_grid() / warp_lanes, seq = sizes.mask.seq;
    row = static_cast<int>(warp % seq);
    head = static_cast<int>(warp / seq % heads);
    sequence = static_cast<int>(warp / seq / heads);
  }
  /// Index into what is kept for each query of each head.
  __device__ std::int64_t place(const AttentionSizes& sizes, int of_head, int of_row) const {
    return (static_cast<std::int64_t>(sequence) * sizes.heads + of_head) * sizes.mask.seq + of_row;
  }
};

template <class T>
__device__ PlainSoftmax<T> softmax_of_row(const AttentionSizes& sizes, const PlainRow& mine,
                                          const T* qkv) {
  const int kv_head = mine.head / sizes.group();
  const auto keys = sizes.keys(qkv, mine.sequence, kv_head);
  const auto values = sizes.values(qkv, mine.sequence, kv_head);
  const auto query = read_row(sizes.queries(qkv, mine.sequence, mine.head), mine.row);
  const FlashSpan seen = sizes.mask.keys_of(mine.row);
  PlainSoftmax<T> softmax;
  for (int key = seen.first; key < seen.last; ++key) {
    const T score = product(query, read_row(keys, key)) * static_cast<T>(sizes.scale);
    softmax.add(score, read_row(values, key));
  }
  return softmax;
}

template <class T>
__global__ void plain_forward_row(AttentionSizes sizes, const T* qkv, T* out, float* lse) {
  const PlainRow mine{sizes, sizes.heads};
  if (mine.sequence >= sizes.batch) return;
  const PlainSoftmax<T> softmax = softmax_of_row(sizes, mine, qkv);
  write_row(softmax.out, 1 / softmax.sum, sizes.context(out, mine.sequence, mine.head), mine.row);
  if (threadIdx.x % warp_lanes == 0) {
    lse[mine.place(sizes, mine.head, mine.row)] = static_cast<float>(softmax.log_sum());
  }
}

/// A query's log-sum-exp and D, as in backward on tensor cores (flash_backward.hpp), but natural.
/// The log-sum-exp is computed again, as forward's fp32 is not enough for fp64.
template <class T>
struct PlainStatistic {
  T log_sum, product;
};

template <class T>
struct PlainOperands {
  AttentionSizes sizes;
  const T* qkv;
  const T* out;
  const T* d_out;
  PlainStatistic<T>* statistics;
  T* d_qkv;
};

/// dQ = scale dS K of a query, and its statistics.
template <class T>
__global__ void plain_query_gradient(PlainOperands<T> x) {
  const AttentionSizes& sizes = x.sizes;
  const PlainRow mine{sizes, sizes.heads};
  if (mine.sequence >= sizes.batch) return;
  const int kv_head = mine.head / sizes.group();
  const auto keys = sizes.keys(x.qkv, mine.sequence, kv_head);
  const auto values = sizes.values(x.qkv, mine.sequence, kv_head);
  const auto query = read_row(sizes.queries(x.qkv, mine.sequence, mine.head), mine.row);
  const auto d_out = read_row(sizes.context(x.d_out, mine.sequence, mine.head), mine.row);
  const PlainStatistic<T> of_row{
      softmax_of_row(sizes, mine, x.qkv).log_sum(),
      product(read_row(sizes.context(x.out, mine.sequence, mine.head), mine.row), d_out)};
  if (threadIdx.x % warp_lanes == 0) {
    x.statistics[mine.place(sizes, mine.head, mine.row)] = of_row;
  }
  const T scale = static_cast<T>(sizes.scale);
  const FlashSpan seen = sizes.mask.keys_of(mine.row);
  SpreadRow<T> sum;
  for (int i = seen.first; i < seen.last; ++i) {
    const auto key = read_row(keys, i);
    const T weight = exponential(product(query, key) * scale - of_row.log_sum);
    sum.add(weight * (product(d_out, read_row(values, i)) - of_row.product), key);
  }
  write_row(sum, scale, sizes.queries(x.d_qkv, mine.sequence, mine.head), mine.row);
}

/// dK = scale dS' Q and dV = P' dO of a key, over the queries of all heads that share it.
template <class T>
__global__ void plain_key_gradient(PlainOperands<T> x) {
  const AttentionSizes& sizes = x.sizes;
  const PlainRow mine{sizes, sizes.kv_heads};
  if (mine.sequence >= sizes.batch) return;
  const auto key = read_row(sizes.keys(x.qkv, mine.sequence, mine.head), mine.row);
  const auto value = read_row(sizes.values(x.qkv, mine.sequence, mine.head), mine.row);
  const T scale = static_cast<T>(sizes.scale);
  const FlashSpan attended_by = sizes.mask.queries_of(mine.row);
  SpreadRow<T> d_key, d_value;
  for (int head = mine.head * sizes.group(); head < (mine.head + 1) * sizes.group(); ++head) {
    const auto queries = sizes.queries(x.qkv, mine.sequence, head);
    const auto d_outs = sizes.context(x.d_out, mine.sequence, head);
    for (int i = attended_by.first; i < attended_by.last; ++i) {
      const PlainStatistic<T> of_row = x.statistics[mine.place(sizes, head, i)];
      const auto query = read_row(queries, i), d_out = read_row(d_outs, i);
      const T weight = exponential(product(query, key) * scale - of_row.log_sum);
      d_value.add(weight, d_out);
      d_key.add(weight * (product(d_out, value) - of_row.product), query);
    }
  }
  write_row(d_key, scale, sizes.keys(x.d_qkv, mine.sequence, mine.head), mine.row);
  write_row(d_value, T{1}, sizes.values(x.d_qkv, mine.sequence, mine.head), mine.row);
}

/// A warp for each row of `heads` heads of every sequence.
Grid warps_of_rows(const AttentionSizes& sizes, int heads) {
  return warps_for(static_cast<std::int64_t>(sizes.batch) * heads * sizes.mask.seq);
}

template <class F>
void with_plain_format(const Call& call, const F& f) {
  call.in(0).dtype == models::DType::fp64 ? f(Type<double>{}) : f(Type<float>{});
}

}  // namespace

void plain_forward(const Call& call) {
  const AttentionSizes sizes{call.operation().attention()};
  with_plain_format(call, [&]<class T>(Type<T>) {
    launch(plain_forward_row<T>, warps_of_rows(sizes, sizes.heads), call.stream, sizes,
           call.read<T>(0), call.write<T>(0), call.write<float>(1));
  });
}

void plain_backward(const Call& call) {
  const AttentionSizes sizes{call.operation().attention()};
  with_plain_format(call, [&]<class T>(Type<T>) {
    const PlainOperands<T> x{sizes,
                             call.read<T>(0),
                             call.read<T>(1),
                             call.read<T>(3),
                             reinterpret_cast<PlainStatistic<T>*>(call.scratch),
                             call.write<T>(0)};
    launch(plain_query_gradient<T>, warps_of_rows(sizes, sizes.heads), call.stream, x);
    launch(plain_key_gradient<T>, warps_of_rows(sizes, sizes.kv_heads), call.stream, x);
  });
}

}  // namespace orrery::executor::cuda
