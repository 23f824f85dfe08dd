// Kernels on gradients before and after communication: accumulation, top-k compression.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

/// sum += fresh
template <class T>
void accumulate(const Call<T>& call) {
  const std::int64_t n = call.in(0).elements();
  for (std::int64_t i = 0; i < n; ++i) call.writes[0][i] = call.reads[1][i] + call.reads[0][i];
}

/// Top-k compression with error feedback: of gradient + residual, writes the k largest by magnitude
/// and their places, ascending; the rest is the new residual. The earlier of equals is taken. NaN
/// counts as largest, so that it does not stay in the residual.
/// Source  Lin et al. 2018, arXiv 1712.01887; error feedback as there
template <class T>
void top_k(const Call<T>& call) {
  const std::int64_t n = call.in(0).elements(), k = call.out(0).elements();
  const T* gradient = call.reads[0];
  T* residual = call.writes[2];
  auto* places = reinterpret_cast<std::int32_t*>(call.out(1).data);
  for (std::int64_t i = 0; i < n; ++i) residual[i] = call.reads[1][i] + gradient[i];
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    if constexpr (in_ring<T>) {
      return residual[a] != residual[b] ? residual[a] > residual[b] : a < b;
    } else {
      const auto size = [](T of) {
        return std::isnan(of) ? std::numeric_limits<T>::infinity() : std::abs(of);
      };
      const T x = size(residual[a]), y = size(residual[b]);
      return x != y ? x > y : a < b;
    }
  };
  if (k < n) std::nth_element(order.begin(), order.begin() + k, order.end(), larger);
  std::sort(order.begin(), order.begin() + k);
  for (std::int64_t i = 0; i < k; ++i) {
    places[i] = order[static_cast<std::size_t>(i)];
    call.writes[0][i] = residual[places[i]];
    residual[places[i]] = T{};
  }
}

/// gradient = 0, then every rank's values are added at their places, rank by rank.
template <class T>
void scatter_add(const Call<T>& call) {
  std::fill_n(call.writes[0], call.out(0).elements(), T{});
  const auto* places = reinterpret_cast<const std::int32_t*>(call.in(1).data);
  const std::int64_t count = call.in(0).elements();
  for (std::int64_t i = 0; i < count; ++i) call.writes[0][places[i]] += call.reads[0][i];
}

}  // namespace

void add_gradients(KernelTable& table) {
  table.set(models::OpKind::accumulate, [](const auto& call) { accumulate(call); });
  table.set(models::OpKind::top_k, [](const auto& call) { top_k(call); });
  table.set(models::OpKind::scatter_add, [](const auto& call) { scatter_add(call); });
}

}  // namespace orrery::executor::cpu
