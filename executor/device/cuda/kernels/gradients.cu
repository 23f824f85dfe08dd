// Kernels on gradients before and after communication: accumulation, casts, sums of sparse
// gradients.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/clear.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// sum = sum so far + fresh
template <class T, class G, int width>
struct Accumulate {
  std::int64_t n;
  const T* fresh;
  const G* sum;
  G* out;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<G>;
    auto there = load<width>(sum, i * width, n, true);
    const auto pack = load<width>(fresh, i * width, n, true);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      there.of[j] = from_float<G>(widen_to<C>(there.of[j]) + widen_to<C>(pack.of[j]));
    }
    store(there, out, i * width, n, true);
  }
};

template <class From, class To, int width>
struct Cast {
  std::int64_t n;
  const From* from;
  To* to;

  __device__ void operator()(std::int64_t i) const {
    const auto pack = load<width>(from, i * width, n, true);
    Pack<To, width> out;
#pragma unroll
    for (int j = 0; j < width; ++j) out.of[j] = from_float<To>(widen_to<Compute<From>>(pack.of[j]));
    store(out, to, i * width, n, true);
  }
};

template <class T>
struct ScatterAdd {
  const T* values;
  const std::int32_t* places;
  T* to;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    T& sum = to[places[i]];
    sum = from_float<T>(widen_to<C>(sum) + widen_to<C>(values[i]));
  }
};

}  // namespace

void accumulate(const Call& call) {
  const std::int64_t n = call.in(0).elements();
  with_formats(call.in(0).dtype, call.out(0).dtype, [&]<class T, class G>(Type<T>, Type<G>) {
    const T* fresh = call.read<T>(0);
    const G* sum = call.read<G>(1);
    G* out = call.write<G>(0);
    with_width(
        [&]<int width>(Width<width>) {
          launch_for_each(quotient_up(n, width), call.stream,
                          Accumulate<T, G, width>{n, fresh, sum, out});
        },
        fresh, sum, out);
  });
}

/// Copies to another format, without the padding of the source. With rotary frequencies it joins or
/// splits the heads of latent attention instead (latent.cu).
void cast(const Call& call) {
  const bool rotates = !call.operation().frequencies().empty();
  if (rotates) return call.kernel.reads.size() > 1 ? join_heads(call) : split_heads(call);
  const std::int64_t n = call.out(0).elements();
  with_format(call.in(0).dtype, [&]<class From>(Type<From>) {
    with_format(call.out(0).dtype, [&]<class To>(Type<To>) {
      const From* from = call.read<From>(0);
      To* to = call.write<To>(0);
      with_width(
          [&]<int width>(Width<width>) {
            launch_for_each(quotient_up(n, width), call.stream, Cast<From, To, width>{n, from, to});
          },
          from, to);
    });
  });
}

/// gradient = 0, then every rank's values are added at their places, rank by rank: the places of
/// one rank are distinct, so each of its sums has one thread. 16 bits are rounded after each rank.
void scatter_add(const Call& call) {
  const std::int64_t ranks = call.in(0).shape[1], kept = call.in(0).shape[2];
  with_format(call.out(0).dtype, [&]<class T>(Type<T>) {
    T* to = call.write<T>(0);
    clear(to, call.out(0).elements(), call.stream);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      launch_for_each(kept, call.stream,
                      ScatterAdd<T>{call.read<T>(0) + rank * kept,
                                    call.read<std::int32_t>(1) + rank * kept, to});
    }
  });
}

}  // namespace orrery::executor::cuda
