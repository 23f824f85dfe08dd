// Heads of latent attention (MLA): joined from the products of the latents and the rotary part of
// keys that all heads share; split again in backward (device/cpu/latent.cpp).

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rotations.hpp"
#include "executor/device/latent_heads.hpp"

namespace orrery::executor::cuda {

namespace {

/// Columns of a rank's heads, and the positions of its tokens.
struct LatentColumns : LatentHeads {
  std::int64_t sequence = 1;
  const std::int64_t* positions = nullptr;

  LatentColumns(const Call& call, const View& attended)
      : LatentHeads{call.operation(), attended},
        sequence{call.kernel.place.sequence},
        positions{call.tokens.positions} {}
  __device__ double position(std::int64_t row) const {
    const std::int64_t token = divided(row, sequence).remainder;
    return static_cast<double>(positions == nullptr ? token : positions[token]);
  }
};

enum class RotationDirection : std::uint8_t { forward, backward };

/// Rotates the pairs (2i, 2i + 1) of `from`, as DeepSeek's models do.
template <class T, class C>
__device__ void rotate_pairs(const Frequencies& by, double position, RotationDirection direction,
                             const C* from, T* to) {
  for (int i = 0; i < by.pairs; ++i) {
    Rotation<C> of = rotation_by<C>(position * by.of[i], by.magnitude);
    if (direction == RotationDirection::backward) of.sine = -of.sine;
    const C a = from[2 * i], b = from[2 * i + 1];
    to[2 * i] = from_float<T>(a * of.cosine - b * of.sine);
    to[2 * i + 1] = from_float<T>(b * of.cosine + a * of.sine);
  }
}

template <class T, class C>
__device__ void widen_all(const T* from, std::int64_t count, C* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = widen_to<C>(from[i]);
}

/// One thread for a head of a row.
template <class T>
struct JoinHeads {
  LatentColumns of;
  Frequencies by;
  std::int64_t shared_columns;
  const T *queries, *made, *shared;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    const Division at = divided(i, of.heads);
    const std::int64_t row = at.quotient, h = at.remainder;
    const double position = of.position(row);
    const T* const query = queries + i * of.dim;
    const T* const own = made + i * of.made();
    T* const to = out + row * of.columns;
    for (std::int64_t j = 0; j < of.plain(); ++j) {
      to[h * of.dim + j] = query[j];
      to[of.key(h) + j] = own[j];
    }
    for (std::int64_t j = 0; j < of.value; ++j) to[of.value_of(h) + j] = own[of.plain() + j];
    C pairs[2 * Frequencies::most_pairs];
    widen_all(query + of.plain(), of.rotary, pairs);
    rotate_pairs(by, position, RotationDirection::forward, pairs, to + h * of.dim + of.plain());
    widen_all(shared + (row + 1) * shared_columns - of.rotary, of.rotary, pairs);
    rotate_pairs(by, position, RotationDirection::forward, pairs, to + of.key(h) + of.plain());
  }
};

/// Backward of JoinHeads: one thread for each head of a row, and one more for a row, which sums the
/// gradients of the part that its heads share.
template <class T>
struct SplitHeads {
  LatentColumns of;
  Frequencies by;
  const T* in;
  T *queries, *made, *shared;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    const Division at = divided(i, of.heads + 1);
    const std::int64_t row = at.quotient, h = at.remainder;
    const double position = of.position(row);
    const T* const from = in + row * of.columns;
    C pairs[2 * Frequencies::most_pairs];
    if (h == of.heads) {
      for (std::int64_t j = 0; j < of.rotary; ++j) pairs[j] = C{};
      for (std::int64_t each = 0; each < of.heads; ++each) {
        const T* const key = from + of.key(each) + of.plain();
        for (std::int64_t j = 0; j < of.rotary; ++j) pairs[j] += widen_to<C>(key[j]);
      }
      return rotate_pairs(by, position, RotationDirection::backward, pairs,
                          shared + row * of.rotary);
    }
    T* const query = queries + (row * of.heads + h) * of.dim;
    T* const own = made + (row * of.heads + h) * of.made();
    for (std::int64_t j = 0; j < of.plain(); ++j) {
      query[j] = from[h * of.dim + j];
      own[j] = from[of.key(h) + j];
    }
    for (std::int64_t j = 0; j < of.value; ++j) own[of.plain() + j] = from[of.value_of(h) + j];
    widen_all(from + h * of.dim + of.plain(), of.rotary, pairs);
    rotate_pairs(by, position, RotationDirection::backward, pairs, query + of.plain());
  }
};

/// One thread for a number.
template <class T>
struct PutLastColumns {
  const T* from;
  T* to;
  std::int64_t columns, width;

  __device__ void operator()(std::int64_t i) const {
    const Division at = divided(i, width);
    to[(at.quotient + 1) * columns - width + at.remainder] = from[i];
  }
};

}  // namespace

void put_last_columns(const View& from, const View& to, Stream stream) {
  with_format(to.dtype, [&]<class T>(Type<T>) {
    launch_for_each(from.elements(), stream,
                    PutLastColumns<T>{reinterpret_cast<const T*>(from.data),
                                      reinterpret_cast<T*>(to.data), to.shape[2], from.shape[2]});
  });
}

void join_heads(const Call& call) {
  const Frequencies by{call.operation()};
  const LatentColumns of{call, call.out(0)};
  with_format(call.out(0).dtype, [&]<class T>(Type<T>) {
    launch_for_each(call.out(0).shape[1] * of.heads, call.stream,
                    JoinHeads<T>{of, by, call.in(2).shape[2], call.read<T>(0), call.read<T>(1),
                                 call.read<T>(2), call.write<T>(0)});
  });
}

void split_heads(const Call& call) {
  const Frequencies by{call.operation()};
  const LatentColumns of{call, call.in(0)};
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    launch_for_each(call.in(0).shape[1] * (of.heads + 1), call.stream,
                    SplitHeads<T>{of, by, call.read<T>(0), call.write<T>(0), call.write<T>(1),
                                  call.write<T>(2)});
  });
}

}  // namespace orrery::executor::cuda
