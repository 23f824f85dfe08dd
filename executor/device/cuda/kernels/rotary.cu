// Rotary position embeddings, in place.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rotations.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr std::int64_t at_once = 8;  // heads that one thread rotates by the same angles

enum class Way : std::uint8_t { there, back };

/// The heads to rotate: the first `count` of each token's `columns` numbers, `dim` numbers each, of
/// which the first 2 `half` are rotated.
struct Heads {
  std::int64_t rows = 0, columns = 0, count = 0, dim = 0, half = 0, sequence = 1;
  Way way = Way::there;
  bool aligned = false;
  const std::int64_t* positions = nullptr;  // of tokens of a sequence; null: in order
};

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
  const std::int64_t token = divided(row, heads.sequence).remainder;
  const auto position =
      static_cast<double>(heads.positions == nullptr ? token : heads.positions[token]);
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
  const models::HeadColumns& of = call.operation().heads();
  const View& view = call.out(0);
  Heads heads;
  heads.rows = view.shape[1];
  heads.columns = view.shape[2];
  const Frequencies frequencies{call.operation()};
  heads.dim = of.dim;
  heads.half = frequencies.pairs;
  heads.positions = call.tokens.positions;
  heads.count = of.queries + of.keys;
  heads.sequence = call.kernel.place.sequence;
  heads.way = call.operation().kind == models::OpKind::rotary ? Way::there : Way::back;
  with_format(view.dtype, [&]<class T>(Type<T>) {
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
