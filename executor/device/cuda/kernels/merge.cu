// Merges partial attentions, each over the keys of some ranks, into one over all of the keys.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// Merges two outputs, each a softmax over its own keys with its log-sum-exp, into one over the
/// keys of both. One thread for a head of a row.
/// Source  Milakov & Gimelshein 2018, arXiv 1805.02867
template <class T, class E>
struct MergeOutputs {
  std::int64_t heads, length, dim;
  const T *own, *part;
  const E *of_own, *of_part;
  T* out;
  E* sums;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    const Division of = divided(i, heads);
    const Division row = divided(of.quotient, length);
    const std::int64_t at = (row.quotient * heads + of.remainder) * length + row.remainder;
    const C a = static_cast<C>(of_own[at]), b = static_cast<C>(of_part[at]), top = larger(a, b);
    const C both = top + static_cast<C>(log(exponential(a - top) + exponential(b - top)));
    const C first = exponential(a - both), second = exponential(b - both);
    sums[at] = static_cast<E>(both);
    for (std::int64_t j = i * dim; j < (i + 1) * dim; ++j) {
      out[j] = from_float<T>(first * widen_to<C>(own[j]) + second * widen_to<C>(part[j]));
    }
  }
};

/// Gradients of queries add up on this rank. Gradients of keys and values travel with the keys from
/// rank to rank: the sum that arrived plus this rank's part.
template <class T>
struct MergeGradients {
  std::int64_t columns, keys;
  const T *part, *arrived;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    const Division of = divided(i, columns);
    const std::int64_t key = of.remainder - (columns - keys);
    const C there = widen_to<C>(key < 0 ? out[i] : arrived[of.quotient * keys + key]);
    out[i] = from_float<T>(there + widen_to<C>(part[i]));
  }
};

void merge_outputs(const Call& call) {
  const models::AttentionShape& of = call.operation().attention();
  const std::int64_t length = call.in(2).elements() / of.batch / of.heads;
  with_wide_sums(call.out(0).dtype, call.out(1).dtype, "sums of attention in 16 bits",
                 [&]<class T, class E>(Type<T>, Type<E>) {
                   launch_for_each(
                       call.out(0).shape[1] * of.heads, call.stream,
                       MergeOutputs<T, E>{of.heads, length, of.head_dim, call.read<T>(0),
                                          call.read<T>(1), call.read<E>(2), call.read<E>(3),
                                          call.write<T>(0), call.write<E>(1)});
                 });
}

}  // namespace

void merge(const Call& call) {
  if (call.kernel.reads.size() == 4) return merge_outputs(call);
  with_format(call.out(0).dtype, [&]<class T>(Type<T>) {
    launch_for_each(call.out(0).elements(), call.stream,
                    MergeGradients<T>{call.out(0).shape[2], call.in(2).shape[2], call.read<T>(1),
                                      call.read<T>(2), call.write<T>(0)});
  });
}

}  // namespace orrery::executor::cuda
