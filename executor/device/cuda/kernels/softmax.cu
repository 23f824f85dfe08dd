// Softmax of attention scores with mask and scale, where attention is not one fused kernel.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rows.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr unsigned most_lanes = 512;

/// Scores [seq, seq] of each head, one row for each query.
struct SoftmaxScores {
  Rows rows;
  int window = 0;
  bool causal = true;
  double scale = 1;
  const std::int64_t *begins = nullptr, *ends = nullptr;  // of documents; null: one

  /// The keys [begin, end) that the query of a row attends to.
  __device__ RowPlace place(std::int64_t row) const {
    RowPlace place = rows.place(row);
    if (row >= rows.count) return place;
    const auto query = static_cast<int>(divided(row, rows.n).remainder);
    if (begins != nullptr) {
      place.begin = static_cast<int>(begins[query]);
      place.end = static_cast<int>(ends[query]);
    }
    if (window > 0) place.begin = larger(place.begin, query - window + 1);
    if (causal) place.end = query + 1;
    return place;
  }
};

__device__ bool attends(const RowPlace& place, int key) {
  return key >= place.begin && key < place.end;
}

/// p = softmax(score scale) over the keys that a query sees, 0 elsewhere.
template <class T>
__global__ void __launch_bounds__(most_lanes)
    softmax_rows(SoftmaxScores scores, const T* from, T* to) {
  using C = Compute<T>;
  const RowPlace place = scores.place(scores.rows.of_group(blockIdx.x));
  const auto scale = static_cast<C>(scores.scale);
  const RowValues<T> x{from, place};
  C largest = -infinity<C>;
  x.visit([&](int at, const auto& pack, int) {
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      if (attends(place, at + j)) largest = larger(largest, widen_to<C>(pack.of[j]));
    }
  });
  largest = of_group(largest, place.lanes, Largest{});
  C sum{};
  x.visit([&](int at, const auto& pack, int) {
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      if (attends(place, at + j)) sum += exponential((widen_to<C>(pack.of[j]) - largest) * scale);
    }
  });
  const C share = C(1) / of_group(sum, place.lanes, Sum{});
  x.visit([&](int at, auto pack, int) {
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      C p{};
      if (attends(place, at + j))
        p = exponential((widen_to<C>(pack.of[j]) - largest) * scale) * share;
      pack.of[j] = from_float<T>(p);
    }
    store(pack, to + place.first, at, place.n, place.aligned);
  });
}

/// dS = p (dp - sum(p dp)) scale
template <class T>
__global__ void __launch_bounds__(most_lanes)
    softmax_backward_rows(SoftmaxScores scores, const T* gradient, const T* probability, T* to) {
  using C = Compute<T>;
  const RowPlace place = scores.place(scores.rows.of_group(blockIdx.x));
  const auto scale = static_cast<C>(scores.scale);
  const RowValues<T> p{probability, place}, dp{gradient, place};
  C sum{};
  p.visit([&](int at, const auto& pack, int k) {
    const auto slope = dp.pack(at, k);
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      if (attends(place, at + j)) sum += widen_to<C>(pack.of[j]) * widen_to<C>(slope.of[j]);
    }
  });
  sum = of_group(sum, place.lanes, Sum{});
  p.visit([&](int at, auto pack, int k) {
    const auto slope = dp.pack(at, k);
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      C ds{};
      if (attends(place, at + j)) {
        ds = widen_to<C>(pack.of[j]) * (widen_to<C>(slope.of[j]) - sum) * scale;
      }
      pack.of[j] = from_float<T>(ds);
    }
    store(pack, to + place.first, at, place.n, place.aligned);
  });
}

/// Scores of which each query is read by `share.lanes` threads.
template <class T, class... Operands>
SoftmaxScores scores_of(const Call& call, const RowShare& share, const Operands*... operands) {
  const models::AttentionShape& shape = call.operation().attention();
  SoftmaxScores scores;
  scores.rows = shifted_rows<T>(shape.batch * shape.heads * shape.seq, shape.seq, operands...);
  scores.rows.lanes = share.lanes;
  scores.window = static_cast<int>(shape.window);
  scores.causal = shape.causal;
  scores.scale = shape.score_scale();
  if (!call.tokens.one_document) {
    scores.begins = call.tokens.begins;
    scores.ends = call.tokens.ends;
  }
  return scores;
}

}  // namespace

void softmax(const Call& call) {
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    const T* from = call.read<T>(0);
    T* to = call.write<T>(0);
    const RowShare share =
        share_of_rows(call.operation().attention().seq, per_access<T>, most_lanes);
    const SoftmaxScores scores = scores_of<T>(call, share, from, to);
    launch(softmax_rows<T>, {blocks_of(scores.rows.count, share), share.threads}, call.stream,
           scores, from, to);
  });
}

void softmax_backward(const Call& call) {
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    const T* gradient = call.read<T>(0);
    const T* probability = call.read<T>(1);
    T* to = call.write<T>(0);
    const RowShare share =
        share_of_rows(call.operation().attention().seq, per_access<T>, most_lanes);
    const SoftmaxScores scores = scores_of<T>(call, share, gradient, probability, to);
    launch(softmax_backward_rows<T>, {blocks_of(scores.rows.count, share), share.threads},
           call.stream, scores, gradient, probability, to);
  });
}

}  // namespace orrery::executor::cuda
