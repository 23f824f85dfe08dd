// The loss (cross-entropy) over a shard of the vocabulary.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rows.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr unsigned most_lanes = 1024;

/// The three numbers per row of `statistics`.
enum Statistic : int { largest_logit, exponentials, label_logit, statistic_count };

/// Rows of logits and their labels; columns from `real` on are padding of the vocabulary.
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
  /// Has the row a label in any shard?
  __device__ bool predicts(std::int64_t row) const { return labels[row] >= 0; }
};

/// Computes exp(logit - largest) and each row's statistics over this rank's columns, without
/// padding.
template <class T, class E>
__global__ void __launch_bounds__(most_lanes)
    loss_rows(Shard shard, const T* logits, E* out, E* statistics) {
  using C = Compute<E>;
  constexpr int width = RowValues<T>::width;
  const std::int64_t row = shard.rows.of_group(blockIdx.x);
  const RowPlace place = shard.place();
  const bool counts = row < shard.rows.count && shard.predicts(row);
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
      if (!counts || !real(at + j)) continue;
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
  if (!counts) {  // statistics add up over the shards to log 1 - 0
    of[largest_logit] = of[label_logit] = E{};
    of[exponentials] = from_float<E>(shard.first > 0 ? C(0) : C(1));
    return;
  }
  of[largest_logit] = largest;
  of[exponentials] = sum;
  of[label_logit] = label < 0 ? -infinity<C> : widen_to<C>(logits[place.first + label]);
}

/// dlogit = (softmax - 1 at the label) / tokens of the global batch, from every shard's statistics:
///   softmax = e exp(m - M) / sum over shards i of s_i exp(m_i - M)
/// e, m      this shard's exponential and largest logit
/// s_i, m_i  shard i's sum of exponentials and largest logit;  M  largest of all
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
  const E factor =
      of.shard.predicts(row)
          ? factor_of(of.statistics, of.shard.rows.count, row, of.shards, of.own) * of.scale
          : E{};
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
  const std::int64_t vocabulary = call.kernel.operation->vocabulary();
  shard.real = static_cast<int>(std::clamp<std::int64_t>(vocabulary - shard.first, 0, n));
  return shard;
}

}  // namespace

void cross_entropy(const Call& call) {
  const std::int64_t n = call.in(0).shape[2];
  with_wide_sums(call.in(0).dtype, call.out(0).dtype, "exponentials of a loss in 16 bits",
                 [&]<class T, class E>(Type<T>, Type<E>) {
                   const T* logits = call.read<T>(0);
                   E* out = call.write<E>(0);
                   const RowShare share = share_of_rows(n, per_access<T>, most_lanes);
                   const Shard shard = shard_of<T>(call, share, logits, out);
                   launch(loss_rows<T, E>, {blocks_of(shard.rows.count, share), share.threads},
                          call.stream, shard, logits, out, call.write<E>(1));
                 });
}

void cross_entropy_backward(const Call& call) {
  const std::int64_t n = call.in(0).shape[2];
  with_wide_sums(call.out(0).dtype, call.in(0).dtype, "exponentials of a loss in 16 bits",
                 [&]<class T, class E>(Type<T>, Type<E>) {
                   const RowShare share = share_of_rows(n, per_access<E>, most_lanes);
                   LossBackward<E, T> of{};
                   of.raised = call.read<E>(0);
                   of.out = call.write<T>(0);
                   of.shard = shard_of<E>(call, share, of.raised, of.out);
                   of.statistics = call.read<E>(2);
                   of.shards = call.in(2).shape[0];
                   of.own = of.shard.first / n;
                   of.scale = static_cast<E>(call.kernel.place.loss_scale);
                   launch(loss_backward_rows<E, T>,
                          {blocks_of(of.shard.rows.count, share), share.threads}, call.stream, of);
                 });
}

}  // namespace orrery::executor::cuda
