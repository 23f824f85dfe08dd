// Embedding and head: lookups in the token table, and the loss over a shard of the vocabulary.

#include <algorithm>
#include <limits>

#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/exponential.hpp"

namespace orrery::executor::cpu {

namespace {

/// The number of columns of this rank's shard that are not padding.
template <class T>
std::int64_t real_columns(const Call<T>& call, std::int64_t columns) {
  const std::int64_t vocabulary = call.operation().vocabulary();
  return std::clamp<std::int64_t>(vocabulary - call.kernel.place.first_vocabulary, 0, columns);
}

/// The weights of the ring's loss, which is a weighted sum of logits.
Ring weight_of(std::int64_t label, std::int64_t column) {
  return static_cast<Ring>((label * 7 + column * 3) % 11) + (label == column ? 5U : 1U);
}

/// The three numbers per row of `statistics`.
enum Statistic : std::int64_t { largest, exponentials, label_logit, statistic_count };

/// What looked-up rows are multiplied by; in the ring 1.
template <class T>
T multiplier_of(const Call<T>& call) {
  if constexpr (in_ring<T>) {
    return T(1);
  } else {
    return static_cast<T>(call.operation().multiplier());
  }
}

/// Copies each token's row of the table, or zeros where another rank holds it.
template <class T>
void embedding(const Call<T>& call) {
  const std::int64_t* tokens = call.indices(0);
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  const std::int64_t held = call.in(1).shape[1];
  const T multiplier = multiplier_of(call);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = tokens[i] - call.kernel.place.first_vocabulary;
    T* out = call.writes[0] + i * n;
    if (row < 0 || row >= held) {
      std::fill(out, out + n, T{});
    } else {
      const T* from = call.reads[1] + row * n;
      for (std::int64_t j = 0; j < n; ++j) out[j] = from[j] * multiplier;
    }
  }
}

template <class T>
void embedding_backward(const Call<T>& call) {
  const std::int64_t* tokens = call.indices(0);
  const std::int64_t rows = call.in(1).shape[1], n = call.in(1).shape[2];
  const std::int64_t held = call.out(0).shape[1];
  const T multiplier = multiplier_of(call);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = tokens[i] - call.kernel.place.first_vocabulary;
    if (row < 0 || row >= held) continue;
    const T* dy = call.reads[1] + i * n;
    T* sum = call.writes[0] + row * n;
    for (std::int64_t j = 0; j < n; ++j) sum[j] += dy[j] * multiplier;
  }
}

/// The row of a token without a label: its exponentials are 0, and its statistics add up over the
/// shards to a loss of log 1 - 0.
template <class T>
void nothing_to_predict(std::int64_t first_column, std::int64_t n, T* out, T* of) {
  std::fill(out, out + n, T{});
  of[largest] = of[label_logit] = T{};
  of[exponentials] = in_ring<T> || first_column > 0 ? T{} : T{1};
}

/// Computes exp(logit - largest) and each row's statistics over this rank's columns, without
/// padding and without rows whose label is -1.
/// In the ring the statistics are 0, the weighted sum of logits, 0.
template <class T>
void cross_entropy(const Call<T>& call) {
  const std::int64_t* labels = call.indices(1);
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  const std::int64_t first = call.kernel.place.first_vocabulary;
  const std::int64_t real = real_columns(call, n);
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* logits = call.reads[0] + i * n;
    T* out = call.writes[0] + i * n;
    T* of = call.writes[1] + i * statistic_count;
    if (labels[i] < 0) {
      nothing_to_predict(first, n, out, of);
      continue;
    }
    std::fill(out + real, out + n, T{});
    if constexpr (in_ring<T>) {
      T sum{};
      for (std::int64_t j = 0; j < real; ++j) sum += weight_of(labels[i], first + j) * logits[j];
      std::fill(out, out + real, T{});
      of[largest] = of[label_logit] = T{};
      of[exponentials] = sum;
    } else {
      constexpr T nothing = -std::numeric_limits<T>::infinity();
      of[largest] = real > 0 ? *std::max_element(logits, logits + real) : nothing;
      const T shift = of[largest];
      for (std::int64_t j = 0; j < real; ++j) out[j] = exponential(logits[j] - shift);
      T sum{};
      for (std::int64_t j = 0; j < real; ++j) sum += out[j];
      of[exponentials] = sum;
      const std::int64_t own = labels[i] - first;
      of[label_logit] = own >= 0 && own < real ? logits[own] : nothing;
    }
  }
}

/// dlogit = (softmax - 1 at the label) / labels of the global batch, from every shard's statistics:
///   softmax = e exp(m - M) / sum over shards i of s_i exp(m_i - M)
/// e, m      this shard's exponential and largest logit
/// s_i, m_i  shard i's sum of exponentials and largest logit;  M  largest of all
template <class T>
void cross_entropy_backward(const Call<T>& call) {
  const std::int64_t* labels = call.indices(1);
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  const std::int64_t first = call.kernel.place.first_vocabulary;
  const std::int64_t real = real_columns(call, n);
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* exponential_of = call.reads[0] + i * n;
    T* out = call.writes[0] + i * n;
    if (labels[i] < 0) {
      std::fill(out, out + n, T{});
      continue;
    }
    std::fill(out + real, out + n, T{});
    if constexpr (in_ring<T>) {
      for (std::int64_t j = 0; j < real; ++j) out[j] = weight_of(labels[i], first + j);
    } else {
      const std::int64_t shards = call.in(2).shape[0];
      const auto of = [&](std::int64_t shard) {
        return call.reads[2] + (shard * rows + i) * statistic_count;
      };
      T highest = of(0)[largest];
      for (std::int64_t s = 1; s < shards; ++s) highest = std::max(highest, of(s)[largest]);
      T sum{};
      for (std::int64_t s = 0; s < shards; ++s) {
        sum += of(s)[exponentials] * exponential(of(s)[largest] - highest);
      }
      const auto scale = static_cast<T>(call.kernel.place.loss_scale);
      const T factor = exponential(of(first / n)[largest] - highest) / sum * scale;
      for (std::int64_t j = 0; j < real; ++j) out[j] = exponential_of[j] * factor;
      const std::int64_t own = labels[i] - first;
      if (own >= 0 && own < real) out[own] -= scale;
    }
  }
}

}  // namespace

void add_embedding_and_loss(KernelTable& table) {
  table.set(models::OpKind::embedding, [](const auto& call) { embedding(call); });
  table.set(models::OpKind::embedding_backward, [](const auto& call) { embedding_backward(call); });
  table.set(models::OpKind::cross_entropy, [](const auto& call) { cross_entropy(call); });
  table.set(models::OpKind::cross_entropy_backward,
            [](const auto& call) { cross_entropy_backward(call); });
}

}  // namespace orrery::executor::cpu
