// Rotary positions, in place.

#include <algorithm>

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr int most_pairs = 128;      // of a head: angles travel as an argument of the kernel
constexpr std::int64_t at_once = 8;  // heads that one thread rotates by the same angles

/// Radians per position of each pair of a head.
struct Frequencies {
  double of[most_pairs];
  double magnitude = 1;  // of cosines and sines
};

enum class Way : std::uint8_t { there, back };

/// The heads to rotate: the first of each token's `columns` numbers, `dim` of each head, of which
/// the first 2 `half` turn.
struct Heads {
  std::int64_t rows = 0, columns = 0, count = 0, dim = 0, half = 0, sequence = 1;
  Way way = Way::there;
  bool aligned = false;
};

template <class C>
struct Rotation {
  C cosine, sine;
};

/// The angle is brought below half a turn in fp64, so that fp32 keeps its digits at far positions.
template <class C>
__device__ Rotation<C> rotation_by(double angle, double magnitude) {
  constexpr double whole = 6.283185307179586477;
  const double rest = angle - whole * rint(angle / whole);
  if constexpr (std::is_same_v<C, double>) {
    return {magnitude * cos(rest), magnitude * sin(rest)};
  } else {
    const auto times = static_cast<float>(magnitude);
    return {times * cosf(static_cast<float>(rest)), times * sinf(static_cast<float>(rest))};
  }
}

/// Rotates the pairs (i, i + half) of every query and key head by its position's angle; backward
/// rotates back, which is the transpose. A thread has one pack of pairs of some heads of one token.
template <class T>
__global__ void __launch_bounds__(block_threads)
    rotate_heads(T* x, Heads heads, Frequencies frequencies) {
  using C = Compute<T>;
  constexpr int width = per_access<T>;
  const Division of = divided(thread_of_grid(), (heads.half + width - 1) / width);
  const std::int64_t row = of.quotient, pair = of.remainder * width;
  if (row >= heads.rows) return;
  const auto position = static_cast<double>(divided(row, heads.sequence).remainder);
  Rotation<C> rotations[width];
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const std::int64_t i = smaller<std::int64_t>(pair + j, heads.half - 1);
    rotations[j] = rotation_by<C>(position * frequencies.of[i], frequencies.magnitude);
    if (heads.way == Way::back) rotations[j].sine = -rotations[j].sine;
  }
  const std::int64_t begin = blockIdx.y * at_once, end = smaller(begin + at_once, heads.count);
#pragma unroll 4
  for (std::int64_t h = begin; h < end; ++h) {
    T* low = x + row * heads.columns + h * heads.dim;
    T* high = low + heads.half;
    auto a = load<width>(low, pair, heads.half, heads.aligned);
    auto b = load<width>(high, pair, heads.half, heads.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const C from = widen_to<C>(a.of[j]), to = widen_to<C>(b.of[j]);
      a.of[j] = from_float<T>(from * rotations[j].cosine - to * rotations[j].sine);
      b.of[j] = from_float<T>(to * rotations[j].cosine + from * rotations[j].sine);
    }
    store(a, low, pair, heads.half, heads.aligned);
    store(b, high, pair, heads.half, heads.aligned);
  }
}

}  // namespace

void rotary(const Call& call) {
  const models::HeadColumns& of = call.operation().heads;
  const View& view = call.out(0);
  Heads heads;
  heads.rows = view.shape[1];
  heads.columns = view.shape[2];
  const std::vector<double>& turned = call.operation().frequencies;
  heads.dim = of.dim;
  heads.half = static_cast<std::int64_t>(turned.size());
  heads.count = of.queries + of.keys;
  heads.sequence = call.kernel.place.sequence;
  heads.way = call.operation().kind == models::OpKind::rotary ? Way::there : Way::back;
  ensure(heads.half <= most_pairs, "rotary positions of heads wider than 256");
  Frequencies frequencies{};
  std::copy(turned.begin(), turned.end(), frequencies.of);
  frequencies.magnitude = call.operation().magnitude;
  with_format(view.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* x = call.write<T>(0);
    heads.aligned = on_16_bytes(x) && heads.half % per_access<T> == 0 &&
                    heads.dim % per_access<T> == 0 && heads.columns % per_access<T> == 0;
    const std::int64_t threads = heads.rows * quotient_up(heads.half, per_access<T>);
    const Grid grid{{static_cast<unsigned>(quotient_up(threads, block_threads)),
                     static_cast<unsigned>(quotient_up(heads.count, at_once))},
                    block_threads};
    launch(rotate_heads<T>, grid, call.stream, x, heads, frequencies);
  });
}

}  // namespace orrery::executor::cuda
