// Which experts a token meets, and with what weights; and the gradients of its logits.

#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/weights_of_experts.hpp"

namespace orrery::executor::cuda {

namespace {

/// Thread by token: the k largest logits one after the other, of equals the lower expert first, and
/// the softmax over them.
template <class T, class W>
struct Route {
  std::int64_t experts, k;
  const T* logits;
  W* weights;
  std::int32_t* chosen;

  __device__ void operator()(std::int64_t token) const {
    using C = Compute<W>;
    const T* const own = logits + token * experts;
    W* const weight = weights + token * k;
    std::int32_t* const found = chosen + token * k;
    C above = infinity<C>, largest{}, sum{};
    std::int32_t last = -1;
    for (std::int64_t j = 0; j < k; ++j) {
      std::int32_t best = -1;
      C value = -infinity<C>;
      for (std::int32_t e = 0; e < experts; ++e) {
        const C x = widen_to<C>(own[e]);
        const bool left = x < above || (x == above && e > last);
        if (left && (best < 0 || x > value)) {
          best = e;
          value = x;
        }
      }
      if (best < 0) best = static_cast<std::int32_t>(j);  // nothing but NaN is left
      found[j] = last = best;
      above = value;
      if (j == 0) largest = value;
      const C term = exponential(value - largest);
      weight[j] = from_float<W>(term);
      sum += term;
    }
    for (std::int64_t j = 0; j < k; ++j) {
      weight[j] = from_float<W>(widen_to<C>(weight[j]) / sum);
    }
  }
};

template <class T, class W>
struct RouteBackward {
  std::int64_t experts, k;
  const W* weights;
  const std::int32_t* chosen;
  const W* gradient;
  T* logits;

  __device__ void operator()(std::int64_t token) const {
    using C = Compute<W>;
    const W *const weight = weights + token * k, *const own = gradient + token * k;
    C mean{};
    for (std::int64_t j = 0; j < k; ++j) mean += widen_to<C>(weight[j]) * widen_to<C>(own[j]);
    for (std::int64_t e = 0; e < experts; ++e) logits[token * experts + e] = T{};
    for (std::int64_t j = 0; j < k; ++j) {
      logits[token * experts + chosen[token * k + j]] =
          from_float<T>(widen_to<C>(weight[j]) * (widen_to<C>(own[j]) - mean));
    }
  }
};

}  // namespace

void route(const Call& call) {
  const View& logits = call.in(0);
  with_weights(logits.dtype, [&](auto type, auto of) {
    using T = typename decltype(type)::type;
    using W = typename decltype(of)::type;
    launch_for_each(logits.shape[1], call.stream,
                    Route<T, W>{logits.shape[2], call.out(1).shape[2], call.read<T>(0),
                                call.write<W>(0), call.write<std::int32_t>(1)});
  });
}

void route_backward(const Call& call) {
  const View& logits = call.in(0);
  with_weights(logits.dtype, [&](auto type, auto of) {
    using T = typename decltype(type)::type;
    using W = typename decltype(of)::type;
    launch_for_each(logits.shape[1], call.stream,
                    RouteBackward<T, W>{logits.shape[2], call.in(2).shape[2], call.read<W>(1),
                                        call.read<std::int32_t>(2), call.read<W>(3),
                                        call.write<T>(0)});
  });
}

}  // namespace orrery::executor::cuda
