// Casts, which with rotary frequencies are those of latent attention (MLA): heads are joined from
// the products of the latents and the rotary part of keys that all heads share; split again in
// backward.

#include <algorithm>

#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/rotations.hpp"
#include "executor/device/latent_heads.hpp"

namespace orrery::executor::cpu {

namespace {

/// Cosines and sines for the rank's token in this row.
template <class T>
const std::pair<T, T>* angles_of(const Call<T>& call, std::int64_t row) {
  const Place& place = call.kernel.place;
  const std::vector<double>& frequencies = call.operation().frequencies();
  const auto& all =
      rotations_of<T>(place.tokens == nullptr ? place.sequence : place.tokens->sequence(),
                      frequencies, call.operation().magnitude());
  return all.data() + position_of(place, row) * std::ssize(frequencies);
}

/// Rotates the pairs (2i, 2i + 1), as DeepSeek's models do, by the angles or back.
/// Source  DeepSeek-AI, DeepSeek-V3, inference/model.py, apply_rotary_emb
template <class T>
void rotate_pairs(const std::pair<T, T>* angles, std::int64_t width, bool back, T* x) {
  for (std::int64_t i = 0; i < width; i += 2) {
    const T cosine = angles[i / 2].first;
    const T sine = back ? T{} - angles[i / 2].second : angles[i / 2].second;
    const T a = x[i], b = x[i + 1];
    x[i] = a * cosine - b * sine;
    x[i + 1] = b * cosine + a * sine;
  }
}

/// Reads queries, [key without rotation | value] of each head, and the part of keys that heads
/// share, which follows the normalised latent in its rows. Writes rows of [queries | keys |
/// values], with rotary positions applied to the parts that have them.
template <class T>
void join_heads(const Call<T>& call) {
  const LatentHeads of{call.operation(), call.out(0)};
  const std::int64_t shared_columns = call.in(2).shape[2];
  for (std::int64_t row = 0; row < call.out(0).shape[1]; ++row) {
    const auto* angles = angles_of(call, row);
    T* const out = call.writes[0] + row * of.columns;
    std::copy_n(call.reads[0] + row * of.heads * of.dim, of.heads * of.dim, out);
    T* const first = out + of.key(0) + of.plain();
    std::copy_n(call.reads[2] + (row + 1) * shared_columns - of.rotary, of.rotary, first);
    rotate_pairs(angles, of.rotary, false, first);
    for (std::int64_t h = 0; h < of.heads; ++h) {
      const T* const made = call.reads[1] + (row * of.heads + h) * of.made();
      std::copy_n(made, of.plain(), out + of.key(h));
      std::copy_n(made + of.plain(), of.value, out + of.value_of(h));
      if (h > 0) std::copy_n(first, of.rotary, out + of.key(h) + of.plain());
      rotate_pairs(angles, of.rotary, false, out + h * of.dim + of.plain());
    }
  }
}

/// Backward of join_heads: the gradient of the part that heads share is the sum over this rank's
/// heads.
template <class T>
void split_heads(const Call<T>& call) {
  const LatentHeads of{call.operation(), call.in(0)};
  for (std::int64_t row = 0; row < call.in(0).shape[1]; ++row) {
    const auto* angles = angles_of(call, row);
    const T* const in = call.reads[0] + row * of.columns;
    T* const queries = call.writes[0] + row * of.heads * of.dim;
    std::copy_n(in, of.heads * of.dim, queries);
    T* const shared = call.writes[2] + row * of.rotary;
    std::fill_n(shared, of.rotary, T{});
    for (std::int64_t h = 0; h < of.heads; ++h) {
      T* const made = call.writes[1] + (row * of.heads + h) * of.made();
      std::copy_n(in + of.key(h), of.plain(), made);
      std::copy_n(in + of.value_of(h), of.value, made + of.plain());
      const T* const rotated = in + of.key(h) + of.plain();
      for (std::int64_t i = 0; i < of.rotary; ++i) shared[i] += rotated[i];
      rotate_pairs(angles, of.rotary, true, queries + h * of.dim + of.plain());
    }
    rotate_pairs(angles, of.rotary, true, shared);
  }
}

/// Some columns of each row.
template <class T>
void copy_columns(const Call<T>& call) {
  const std::int64_t wide = call.in(0).shape[2], n = call.out(0).shape[2];
  const std::int64_t rows = call.out(0).elements() / n;
  const T* const from = call.reads[0] + *call.operation().first_column();
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from + i * wide, n, call.writes[0] + i * n);
}

/// Copies to another format, without the padding of the source. With rotary frequencies it joins or
/// splits the heads of latent attention instead.
template <class T>
void cast(const Call<T>& call) {
  const bool rotates = !call.operation().frequencies().empty();
  if (rotates) return call.kernel.reads.size() > 1 ? join_heads(call) : split_heads(call);
  if (call.operation().first_column()) return copy_columns(call);
  if (call.reads[0] == call.writes[0]) return;
  std::copy_n(call.reads[0], call.out(0).elements(), call.writes[0]);
}

}  // namespace

void add_casts(KernelTable& table) {
  table.set(models::OpKind::cast, [](const auto& call) { cast(call); });
}

}  // namespace orrery::executor::cpu
