// The router: each token's experts and their weights, and the gradients of its logits, as on the
// CPU (device/cpu/route.cpp). One thread for each token.

#include "executor/device/cuda/kernels/experts/weights_of_experts.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

using models::Routing;

/// The least sum of scores to divide by: sigmoids of logits far below 0 may all be 0.
template <class C>
constexpr C least_sum = std::numeric_limits<C>::min();

/// A number and its index; -1 where there is none.
template <class C>
struct BestScore {
  C value = infinity<C>;
  std::int32_t at = -1;
};

/// The number in [begin, end) that follows `before` in descending order, the first of equals; only
/// indices for which `among` is true are looked at.
template <class C, class Value, class Among>
__device__ BestScore<C> next_of(BestScore<C> before, std::int32_t begin, std::int32_t end,
                                Value value, Among among) {
  BestScore<C> best{-infinity<C>, -1};
  for (std::int32_t e = begin; e < end; ++e) {
    if (!among(e)) continue;
    const C x = value(e);
    const bool left = x < before.value || (x == before.value && e > before.at);
    if (left && (best.at < 0 || x > best.value)) best = {x, e};
  }
  return best;
}

/// The scores s of a token's experts (models/model/kinds.hpp).
template <class T, class C>
struct ExpertScores {
  const T* logits;
  bool sigmoid;
  C largest, share;

  __device__ ExpertScores(const T* of, std::int64_t experts, const Routing& how)
      : logits{of}, sigmoid{how.score == Routing::Score::sigmoid}, largest{-infinity<C>}, share{1} {
    if (sigmoid) return;
    for (std::int64_t e = 0; e < experts; ++e) largest = larger(largest, logit(e));
    C sum{};
    for (std::int64_t e = 0; e < experts; ++e) sum += exponential(logit(e) - largest);
    share = C(1) / sum;
  }
  __device__ C logit(std::int64_t e) const { return widen_to<C>(logits[e]); }
  __device__ C operator()(std::int64_t e) const {
    return sigmoid ? C(1) / (C(1) + exponential(-logit(e)))
                   : exponential(logit(e) - largest) * share;
  }
};

/// The ratio of a chosen expert's weight to its score.
template <class C, class Score>
__device__ C factor_of(const Routing& how, Score score, const std::int32_t* chosen,
                       std::int64_t k) {
  if (!how.normalised) return static_cast<C>(how.scale);
  C sum{};
  for (std::int64_t j = 0; j < k; ++j) sum += score(chosen[j]);
  return static_cast<C>(how.scale) / larger(sum, least_sum<C>);
}

template <class T, class W>
struct Route {
  Routing how;
  std::int64_t experts, k;
  const T *logits, *correction;
  W* weights;
  std::int32_t* chosen;

  using C = Compute<W>;

  /// The groups that are kept, as a bit mask.
  template <class Value>
  __device__ std::uint64_t groups(Value value) const {
    const auto size = static_cast<std::int32_t>(experts / how.groups);
    const auto every = [](std::int32_t) { return true; };
    const auto sum_of = [&](std::int32_t group) {
      C sum{};
      BestScore<C> best;
      for (std::int64_t i = 0; i < how.best_of_group; ++i) {
        best = next_of(best, group * size, (group + 1) * size, value, every);
        sum += best.value;
      }
      return sum;
    };
    std::uint64_t kept = 0;
    BestScore<C> last;
    for (std::int64_t i = 0; i < how.groups_kept; ++i) {
      last = next_of(last, 0, static_cast<std::int32_t>(how.groups), sum_of, every);
      kept |= std::uint64_t{1} << (last.at < 0 ? i : last.at);  // nothing but NaN is left
    }
    return kept;
  }

  __device__ void operator()(std::int64_t token) const {
    const ExpertScores<T, C> score{logits + token * experts, experts, how};
    W* const weight = weights + token * k;
    std::int32_t* const found = chosen + token * k;
    const bool by_logits = !score.sigmoid && correction == nullptr && how.best_of_group == 1;
    const auto compared = [&](std::int32_t e) {
      if (by_logits) return score.logit(e);
      return correction == nullptr ? score(e) : score(e) + widen_to<C>(correction[e]);
    };
    const bool limited = how.groups > 1;
    const std::uint64_t kept = limited ? groups(compared) : 0;
    const std::int64_t size = experts / how.groups;
    const auto among = [&](std::int32_t e) { return !limited || (kept >> (e / size) & 1) != 0; };
    BestScore<C> last;
    for (std::int64_t j = 0; j < k; ++j) {
      last = next_of(last, 0, static_cast<std::int32_t>(experts), compared, among);
      if (last.at < 0) last.at = static_cast<std::int32_t>(j);  // nothing but NaN is left
      found[j] = last.at;
    }
    const C factor = factor_of<C>(how, score, found, k);
    for (std::int64_t j = 0; j < k; ++j) weight[j] = from_float<W>(factor * score(found[j]));
  }
};

template <class T, class W>
struct RouteBackward {
  Routing how;
  std::int64_t experts, k;
  const T* from;
  const std::int32_t* chosen;
  const W* gradient;
  T* logits;

  __device__ void operator()(std::int64_t token) const {
    using C = Compute<W>;
    const ExpertScores<T, C> score{from + token * experts, experts, how};
    const std::int32_t* const found = chosen + token * k;
    const W* const own = gradient + token * k;
    T* const to = logits + token * experts;
    const C factor = factor_of<C>(how, score, found, k);
    C shared{}, mean{};  // corrections for normalised weights, and for a softmax
    for (std::int64_t j = 0; how.normalised && j < k; ++j) {
      shared += widen_to<C>(own[j]) * factor * score(found[j]) / static_cast<C>(how.scale);
    }
    const auto of_score = [&](std::int64_t j) { return factor * (widen_to<C>(own[j]) - shared); };
    for (std::int64_t j = 0; j < k; ++j) mean += score(found[j]) * of_score(j);
    for (std::int64_t e = 0; e < experts; ++e) {
      to[e] = score.sigmoid ? T{} : from_float<T>(-score(e) * mean);
    }
    for (std::int64_t j = 0; j < k; ++j) {
      const C s = score(found[j]);
      const C slope = score.sigmoid ? s * (1 - s) * of_score(j) : s * (of_score(j) - mean);
      to[found[j]] = from_float<T>(slope);
    }
  }
};

}  // namespace

void route(const Call& call) {
  const View& logits = call.in(0);
  const Routing& how = call.operation().routing();
  with_weights(logits.dtype, [&]<class T, class W>(Type<T>, Type<W>) {
    launch_for_each(logits.shape[1], call.stream,
                    Route<T, W>{how, logits.shape[2], call.out(1).shape[2], call.read<T>(0),
                                how.corrected ? call.read<T>(1) : nullptr, call.write<W>(0),
                                call.write<std::int32_t>(1)});
  });
}

void route_backward(const Call& call) {
  const View& logits = call.in(0);
  with_weights(logits.dtype, [&]<class T, class W>(Type<T>, Type<W>) {
    launch_for_each(
        logits.shape[1], call.stream,
        RouteBackward<T, W>{call.operation().routing(), logits.shape[2], call.in(2).shape[2],
                            call.read<T>(0), call.read<std::int32_t>(2), call.read<W>(3),
                            call.write<T>(0)});
  });
}

}  // namespace orrery::executor::cuda
