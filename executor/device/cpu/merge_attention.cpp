// Merges partial attentions, each over keys of its own, into one over all of the keys.

#include <algorithm>
#include <cmath>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

/// Merges two outputs, each a softmax over its own keys with its log-sum-exp, into one over the
/// keys of both.
/// Source  Milakov & Gimelshein 2018, arXiv 1805.02867
template <class T>
void merge_outputs(const Call<T>& call) {
  const models::AttentionShape& of = call.operation().attention();
  const std::int64_t columns = call.out(0).shape[2], rows = call.out(0).shape[1];
  const std::int64_t length = call.in(2).elements() / of.batch / of.heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t h = 0; h < of.heads; ++h) {
      const std::int64_t sum = (row / length * of.heads + h) * length + row % length;
      const std::int64_t first = row * columns + h * of.head_dim;
      T own{1}, other{1};
      if constexpr (!in_ring<T>) {
        const T a = call.reads[2][sum], b = call.reads[3][sum], largest = std::max(a, b);
        const T both = largest + std::log(std::exp(a - largest) + std::exp(b - largest));
        own = std::exp(a - both);
        other = std::exp(b - both);
        call.writes[1][sum] = both;
      }
      for (std::int64_t j = first; j < first + of.head_dim; ++j) {
        call.writes[0][j] = own * call.reads[0][j] + other * call.reads[1][j];
      }
    }
  }
}

/// Gradients of queries add up on this rank. Gradients of keys and values travel with the keys from
/// rank to rank: the sum that arrived plus this rank's part.
template <class T>
void merge_gradients(const Call<T>& call) {
  const std::int64_t columns = call.out(0).shape[2], keys = call.in(2).shape[2];
  for (std::int64_t row = 0; row < call.out(0).shape[1]; ++row) {
    T* const out = call.writes[0] + row * columns;
    const T* const part = call.reads[1] + row * columns;
    const T* const arrived = call.reads[2] + row * keys;
    const std::int64_t queries = columns - keys;
    for (std::int64_t j = 0; j < queries; ++j) out[j] += part[j];
    for (std::int64_t j = 0; j < keys; ++j) out[queries + j] = arrived[j] + part[queries + j];
  }
}

}  // namespace

template <class T>
void merge(const Call<T>& call) {
  call.kernel.reads.size() == 4 ? merge_outputs(call) : merge_gradients(call);
}

template void merge(const Call<float>&);
template void merge(const Call<double>&);
template void merge(const Call<Ring>&);

}  // namespace orrery::executor::cpu
