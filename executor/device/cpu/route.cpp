// The router: chooses each token's experts and their weights, and computes the gradients of its
// logits (models/model/kinds.hpp).

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

using models::Routing;

template <class T>
struct RoutedToken {
  const T* logits = nullptr;
  const T* correction = nullptr;  // b, the same for all tokens; null: none
  std::int64_t experts = 0, k = 0;
};

/// The score s of every expert (models/model/kinds.hpp).
template <class T>
void score(const Routing& how, const RoutedToken<T>& row, std::vector<T>& scores) {
  scores.assign(row.logits, row.logits + row.experts);
  if (how.score == Routing::Score::sigmoid) {
    for (T& each : scores) each = T(1) / (T(1) + std::exp(-each));
    return;
  }
  const T largest = *std::max_element(scores.begin(), scores.end());
  T sum{};
  for (T& each : scores) sum += each = std::exp(each - largest);
  for (T& each : scores) each /= sum;
}

/// Index of the largest value in [first, end) that is not yet taken; the first of equals.
template <class T>
std::int64_t best_of(const std::vector<T>& values, const std::vector<bool>& taken,
                     std::int64_t first, std::int64_t end) {
  std::int64_t best = -1;
  for (std::int64_t i = first; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (taken[at]) continue;
    if (best < 0 || values[at] > values[static_cast<std::size_t>(best)]) best = i;
  }
  return best;
}

/// Marks the experts that a token may not choose: all in groups that are not kept.
template <class T>
void leave_out_groups(const Routing& how, const std::vector<T>& compared, std::vector<bool>& left) {
  const auto experts = std::ssize(compared), size = experts / how.groups;
  std::vector<T> sums(static_cast<std::size_t>(how.groups));
  for (std::int64_t g = 0; g < how.groups; ++g) {
    std::vector<bool> counted(compared.size(), false);
    for (std::int64_t i = 0; i < how.best_of_group; ++i) {
      const std::int64_t best = best_of(compared, counted, g * size, (g + 1) * size);
      counted[static_cast<std::size_t>(best)] = true;
      sums[static_cast<std::size_t>(g)] += compared[static_cast<std::size_t>(best)];
    }
  }
  left.assign(compared.size(), true);
  std::vector<bool> kept(sums.size(), false);
  for (std::int64_t i = 0; i < how.groups_kept; ++i) {
    const std::int64_t g = best_of(sums, kept, 0, how.groups);
    kept[static_cast<std::size_t>(g)] = true;
    std::fill_n(left.begin() + g * size, size, false);
  }
}

/// A softmax keeps the order of logits but makes some of them equal, so the logits themselves are
/// compared where nothing is added to scores.
bool compares_logits(const Routing& how) {
  return how.score == Routing::Score::softmax && !how.corrected && how.best_of_group == 1;
}

template <class T>
void choose(const Routing& how, const RoutedToken<T>& row, const std::vector<T>& scores,
            std::int32_t* chosen) {
  std::vector<T> compared = scores;
  if (compares_logits(how)) compared.assign(row.logits, row.logits + row.experts);
  for (std::int64_t e = 0; row.correction != nullptr && e < row.experts; ++e) {
    compared[static_cast<std::size_t>(e)] += row.correction[e];
  }
  std::vector<bool> taken(compared.size(), false);
  if (how.groups > 1) leave_out_groups(how, compared, taken);
  for (std::int64_t j = 0; j < row.k; ++j) {
    const std::int64_t best = best_of(compared, taken, 0, row.experts);
    chosen[j] = static_cast<std::int32_t>(best);
    taken[static_cast<std::size_t>(best)] = true;
  }
}

/// The ratio of a chosen expert's weight to its score.
template <class T>
T factor_of(const Routing& how, const std::vector<T>& scores, const std::int32_t* chosen,
            std::int64_t k) {
  T sum{};
  for (std::int64_t j = 0; j < k; ++j) sum += scores[static_cast<std::size_t>(chosen[j])];
  // Sigmoids of logits far below 0 may all be 0.
  const T least = std::numeric_limits<T>::min();
  return static_cast<T>(how.scale) / (how.normalised ? std::max(sum, least) : T(1));
}

/// Gradients of the chosen experts' scores, from those of their weights w_j = f s_j:
///   d s_j = f (d w_j - [normalised] sum over i of d w_i w_i / scale)
template <class T>
void gradients_of_scores(const Routing& how, const RoutedToken<T>& row,
                         const std::vector<T>& scores, const std::int32_t* chosen,
                         const T* gradient, std::vector<T>& to) {
  const T factor = factor_of(how, scores, chosen, row.k);
  T mean{};
  for (std::int64_t j = 0; how.normalised && j < row.k; ++j) {
    const T share = factor * scores[static_cast<std::size_t>(chosen[j])];
    mean += gradient[j] * share / static_cast<T>(how.scale);
  }
  to.assign(scores.size(), T{});
  for (std::int64_t j = 0; j < row.k; ++j) {
    to[static_cast<std::size_t>(chosen[j])] = factor * (gradient[j] - mean);
  }
}

/// Gradients of logits: d x_e = s_e (1 - s_e) d s_e for sigmoids; for a softmax s_e (d s_e - sum
/// over i of s_i d s_i).
template <class T>
void gradients_of_logits(const Routing& how, const std::vector<T>& scores,
                         const std::vector<T>& of_scores, T* logits) {
  T mean{};
  for (std::size_t e = 0; e < scores.size(); ++e) mean += scores[e] * of_scores[e];
  for (std::size_t e = 0; e < scores.size(); ++e) {
    logits[e] = how.score == Routing::Score::sigmoid ? scores[e] * (1 - scores[e]) * of_scores[e]
                                                     : scores[e] * (of_scores[e] - mean);
  }
}

/// Routing in the ring depends on the token's position p alone: expert (p p + j) mod E, with the
/// logits as weights.
void route_in_ring(std::int64_t p, const RoutedToken<Ring>& row, Ring* weights,
                   std::int32_t* chosen) {
  for (std::int64_t j = 0; j < row.k; ++j) {
    chosen[j] = static_cast<std::int32_t>((p * p + j) % row.experts);
    weights[j] = row.logits[chosen[j]];
  }
}

void back_in_ring(const RoutedToken<Ring>& row, const std::int32_t* chosen, const Ring* gradient,
                  Ring* logits) {
  std::fill_n(logits, row.experts, Ring{});
  for (std::int64_t j = 0; j < row.k; ++j) logits[chosen[j]] = gradient[j];
}

template <class T>
void route(const Call<T>& call) {
  const Routing& how = call.operation().routing();
  RoutedToken<T> row{.experts = call.in(0).shape[2], .k = call.out(1).shape[2]};
  if (how.corrected) row.correction = call.reads[1];
  auto* const all = reinterpret_cast<std::int32_t*>(call.out(1).data);
  [[maybe_unused]] std::vector<T> scores;
  for (std::int64_t token = 0; token < call.in(0).shape[1]; ++token) {
    row.logits = call.reads[0] + token * row.experts;
    std::int32_t* const chosen = all + token * row.k;
    T* const weights = call.writes[0] + token * row.k;
    if constexpr (in_ring<T>) {
      const Place& place = call.kernel.place;
      route_in_ring(position_of(place, place.first_row + token), row, weights, chosen);
    } else {
      score(how, row, scores);
      choose(how, row, scores, chosen);
      const T factor = factor_of(how, scores, chosen, row.k);
      for (std::int64_t j = 0; j < row.k; ++j) {
        weights[j] = factor * scores[static_cast<std::size_t>(chosen[j])];
      }
    }
  }
}

template <class T>
void route_backward(const Call<T>& call) {
  const Routing& how = call.operation().routing();
  RoutedToken<T> row{.experts = call.in(0).shape[2], .k = call.in(2).shape[2]};
  const auto* const all = reinterpret_cast<const std::int32_t*>(call.in(2).data);
  [[maybe_unused]] std::vector<T> scores, of_scores;
  for (std::int64_t token = 0; token < call.in(0).shape[1]; ++token) {
    row.logits = call.reads[0] + token * row.experts;
    const std::int32_t* const chosen = all + token * row.k;
    const T* const gradient = call.reads[3] + token * row.k;
    T* const logits = call.writes[0] + token * row.experts;
    if constexpr (in_ring<T>) {
      back_in_ring(row, chosen, gradient, logits);
    } else {
      score(how, row, scores);
      gradients_of_scores(how, row, scores, chosen, gradient, of_scores);
      gradients_of_logits(how, scores, of_scores, logits);
    }
  }
}

}  // namespace

void add_router(KernelTable& table) {
  table.set(models::OpKind::route, [](const auto& call) { route(call); });
  table.set(models::OpKind::route_backward, [](const auto& call) { route_backward(call); });
}

}  // namespace orrery::executor::cpu
