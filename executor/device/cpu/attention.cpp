// Softmax of attention scores with mask and scale, for unfused attention, and rotary positions.

#include <algorithm>
#include <vector>

#include "executor/device/cpu/attention_places.hpp"
#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/exponential.hpp"
#include "executor/device/cpu/rotations.hpp"

namespace orrery::executor::cpu {

namespace {

using models::AttentionShape;

/// The keys [first, last) that query i attends to.
struct Seen {
  std::int64_t first = 0, last = 0;
};
Seen attended_by(const AttentionShape& shape, const TokenMap* tokens, std::int64_t i) {
  if (shape.crosses) return {0, shape.keys};
  const auto place = static_cast<std::size_t>(i);
  const std::int64_t begin = tokens == nullptr ? 0 : tokens->begins[place];
  const std::int64_t end = tokens == nullptr ? shape.seq : tokens->ends[place];
  const auto [first, last] = attended_places(shape, i, begin, end);
  return {first, last};
}

/// `sink` of the head's further logit, if it has one.
template <class T>
void softmax_row(const T* scores, T* out, Seen seen, T scale, const T* sink) {
  T largest = scores[seen.first];
  for (std::int64_t j = seen.first; j < seen.last; ++j) largest = std::max(largest, scores[j]);
  if (sink != nullptr) largest = std::max(largest, *sink / scale);
  for (std::int64_t j = seen.first; j < seen.last; ++j) {
    out[j] = exponential((scores[j] - largest) * scale);
  }
  T sum{};
  if (sink != nullptr) sum = exponential(*sink - largest * scale);
  for (std::int64_t j = seen.first; j < seen.last; ++j) sum += out[j];
  const T share = T(1) / sum;
  for (std::int64_t j = seen.first; j < seen.last; ++j) out[j] *= share;
}

/// Calls `row(first element, seen, head, query)` for every query of every head; zeroes the keys
/// that it does not see.
template <class T, class Row>
void for_each_query(const Call<T>& call, T* out, Row row) {
  const AttentionShape& shape = call.operation().attention();
  const std::int64_t keys = shape.crosses ? shape.keys : shape.seq;
  for (std::int64_t h = 0; h < shape.batch * shape.heads; ++h) {
    for (std::int64_t i = 0; i < shape.seq; ++i) {
      const std::int64_t at = (h * shape.seq + i) * keys;
      const Seen seen = attended_by(shape, call.kernel.place.tokens, i);
      row(at, seen, h % shape.heads, i);
      std::fill(out + at, out + at + seen.first, T{});
      std::fill(out + at + seen.last, out + at + keys, T{});
    }
  }
}

/// p = softmax(score * scale) over the keys that a query sees, 0 elsewhere; a head's sink is one
/// more logit, of a key without a value. In the ring p is the score, and a sink is added to that of
/// a query's own key.
template <class T>
void softmax(const Call<T>& call) {
  const AttentionShape& shape = call.operation().attention();
  const T* scores = call.reads[0];
  const T* sinks = shape.sinks ? call.reads[1] : nullptr;
  T* out = call.writes[0];
  for_each_query(call, out, [&](std::int64_t at, Seen seen, std::int64_t head, std::int64_t i) {
    if constexpr (in_ring<T>) {
      std::copy(scores + at + seen.first, scores + at + seen.last, out + at + seen.first);
      if (sinks != nullptr) out[at + i] += sinks[head];
    } else {
      const auto scale = static_cast<T>(shape.score_scale());
      const T* const sink = sinks == nullptr ? nullptr : sinks + head;
      softmax_row(scores + at, out + at, seen, scale, sink);
    }
  });
}

/// dS = p (dp - sum(p dp)) * scale;  dsink += -(1 - sum(p)) sum(p dp)
template <class T>
void softmax_backward(const Call<T>& call) {
  const AttentionShape& shape = call.operation().attention();
  const T* gradient = call.reads[0];
  const T* probability = call.reads[1];
  T* out = call.writes[0];
  T* const sinks = shape.sinks && call.kernel.writes.size() > 1 ? call.writes[1] : nullptr;
  for_each_query(call, out, [&](std::int64_t at, Seen seen, std::int64_t head, std::int64_t i) {
    if constexpr (in_ring<T>) {
      std::copy(gradient + at + seen.first, gradient + at + seen.last, out + at + seen.first);
      if (sinks != nullptr) sinks[head] += gradient[at + i];
    } else {
      const auto scale = static_cast<T>(shape.score_scale());
      T sum{}, seen_share{};
      for (std::int64_t j = at + seen.first; j < at + seen.last; ++j) {
        sum += probability[j] * gradient[j];
        seen_share += probability[j];
      }
      if (sinks != nullptr) sinks[head] -= (T(1) - seen_share) * sum;
      for (std::int64_t j = at + seen.first; j < at + seen.last; ++j) {
        out[j] = probability[j] * (gradient[j] - sum) * scale;
      }
    }
  });
}

/// Rotates the pairs (i, i + pairs) of every query and key head by its position's angle, in place;
/// backward rotates back, which is the transpose.
template <class T>
void rotary(const Call<T>& call) {
  const models::HeadColumns& of = call.operation().heads();
  const std::vector<double>& frequencies = call.operation().frequencies();
  const auto half = static_cast<std::int64_t>(frequencies.size());
  const std::int64_t heads = of.queries + of.keys;
  const View& view = call.out(0);
  const std::int64_t columns = view.shape[2];
  const bool back = call.operation().kind == models::OpKind::rotary_backward;
  const Place& place = call.kernel.place;
  const auto& rotations =
      rotations_of<T>(place.tokens == nullptr ? place.sequence : place.tokens->sequence(),
                      frequencies, call.operation().magnitude());
  for (std::int64_t row = 0; row < view.shape[1]; ++row) {
    const auto* rotation = rotations.data() + position_of(place, row) * half;
    for (std::int64_t h = 0; h < heads; ++h) {
      T* x = call.writes[0] + row * columns + of.column(h);
      for (std::int64_t i = 0; i < half; ++i) {
        const T cosine = rotation[i].first;
        const T sine = back ? T{} - rotation[i].second : rotation[i].second;
        const T a = x[i], b = x[i + half];
        x[i] = a * cosine - b * sine;
        x[i + half] = b * cosine + a * sine;
      }
    }
  }
}

}  // namespace

void add_unfused_attention(KernelTable& table) {
  table.set(models::OpKind::softmax, [](const auto& call) { softmax(call); });
  table.set(models::OpKind::softmax_backward, [](const auto& call) { softmax_backward(call); });
  table.set(models::OpKind::rotary, [](const auto& call) { rotary(call); });
  table.set(models::OpKind::rotary_backward, [](const auto& call) { rotary(call); });
}

}  // namespace orrery::executor::cpu
