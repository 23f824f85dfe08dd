// The embedding: lookups in the token table, and the table's gradient.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rows.hpp"

namespace orrery::executor::cuda {

namespace {

/// Copies each token's row of the table, or zeros where another rank holds it.
template <class T>
struct Embed {
  Packs packs;
  const std::int64_t* tokens;
  const T* table;
  std::int64_t first, held;
  T* out;
  Compute<T> multiplier;

  __device__ void operator()(std::int64_t i) const {
    const auto [own, at] = packs.place<T>(i);
    const std::int64_t row = tokens[own] - first;
    Pack<T, per_access<T>> pack{};
    if (row >= 0 && row < held) pack = packs.load(table, row, at);
    if (multiplier != Compute<T>(1)) {
#pragma unroll
      for (int j = 0; j < per_access<T>; ++j) {
        pack.of[j] = from_float<T>(widen_to<Compute<T>>(pack.of[j]) * multiplier);
      }
    }
    packs.store(pack, out, own, at);
  }
};

/// Sorts tokens by counting: a token's place is the number of smaller tokens plus that of equal
/// ones before it. One warp for each token, so this is quadratic: 0.02 ms on an H100 for 8,192
/// tokens, 1 ms for 65,536.
///   order[place] = the token's index in the batch
///   equal[place] = at the first of equal tokens, how many there are; 0 at the others
__global__ void sort_tokens(const std::int64_t* tokens, std::int64_t count, std::int32_t* order,
                            std::int32_t* equal) {
  const std::int64_t i = thread_of_grid() / warp_lanes;
  if (i >= count) return;
  const unsigned lane = threadIdx.x % warp_lanes;
  const std::int64_t own = tokens[i];
  std::int32_t below = 0, ahead = 0, same = 0;
#pragma unroll 4
  for (std::int64_t j = lane; j < count; j += warp_lanes) {
    const std::int64_t other = tokens[j];
    below += other < own ? 1 : 0;
    same += other == own ? 1 : 0;
    ahead += other == own && j < i ? 1 : 0;
  }
  below = of_group(below, warp_lanes, Sum{});
  ahead = of_group(ahead, warp_lanes, Sum{});
  same = of_group(same, warp_lanes, Sum{});
  if (lane != 0) return;
  order[below + ahead] = static_cast<std::int32_t>(i);
  equal[below + ahead] = ahead == 0 ? same : 0;
}

template <class T, class G>
struct EmbedBackward {
  std::int64_t n, first, held;
  const std::int64_t* tokens;
  const std::int32_t* order;
  const std::int32_t* equal;
  const T* gradient;
  G* table;
  bool aligned;
  Compute<T> multiplier;
};

/// table[token] += gradient rows of that token, in their order. There is a block for each place
/// among the sorted tokens; that of the first of equal ones sums them all.
template <class T, class G>
__global__ void sum_tokens(EmbedBackward<T, G> of) {
  using C = Compute<T>;
  constexpr int width = per_access<T>;
  const std::int32_t count = of.equal[blockIdx.x];
  const std::int32_t* rows = of.order + blockIdx.x;
  const std::int64_t row = of.tokens[*rows] - of.first;
  const std::int64_t at =
      (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * width;
  if (count == 0 || row < 0 || row >= of.held || at >= of.n) return;
  auto there = load<width>(of.table + row * of.n, at, of.n, of.aligned);
  C sum[width];
#pragma unroll
  for (int j = 0; j < width; ++j) sum[j] = widen_to<C>(there.of[j]);
#pragma unroll 4
  for (std::int32_t i = 0; i < count; ++i) {
    const auto pack = load<width>(of.gradient + rows[i] * of.n, at, of.n, of.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) sum[j] += widen_to<C>(pack.of[j]) * of.multiplier;
  }
#pragma unroll
  for (int j = 0; j < width; ++j) there.of[j] = from_float<G>(sum[j]);
  store(there, of.table + row * of.n, at, of.n, of.aligned);
}

}  // namespace

void embedding(const Call& call) {
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  with_format(call.out(0).dtype, [&]<class T>(Type<T>) {
    const T* table = call.read<T>(1);
    T* out = call.write<T>(0);
    const Packs packs{rows, n, per_access<T>, table, out};
    packs.launch(call.stream, Embed<T>{packs, call.read<std::int64_t>(0), table,
                                       call.kernel.place.first_vocabulary, call.in(1).shape[1], out,
                                       static_cast<Compute<T>>(call.operation().multiplier())});
  });
}

std::int64_t embedding_backward_scratch(const View& tokens) {
  return 2 * tokens.elements() * static_cast<std::int64_t>(sizeof(std::int32_t));
}

void embedding_backward(const Call& call) {
  const std::int64_t rows = call.in(1).shape[1], n = call.in(1).shape[2];
  const auto* tokens = call.read<std::int64_t>(0);
  auto* order = reinterpret_cast<std::int32_t*>(call.scratch);
  std::int32_t* equal = order + rows;
  launch(sort_tokens, warps_for(rows), call.stream, tokens, rows, order, equal);
  with_formats(call.in(1).dtype, call.out(0).dtype, [&]<class T, class G>(Type<T>, Type<G>) {
    constexpr int width = per_access<T>;
    const T* dy = call.read<T>(1);
    G* table = call.write<G>(0);
    const EmbedBackward<T, G> of{n,
                                 call.kernel.place.first_vocabulary,
                                 call.out(0).shape[1],
                                 tokens,
                                 order,
                                 equal,
                                 dy,
                                 table,
                                 on_16_bytes(dy, table) && n % width == 0,
                                 static_cast<Compute<T>>(call.operation().multiplier())};
    constexpr unsigned threads = 128;
    const Grid grid{
        {static_cast<unsigned>(rows), static_cast<unsigned>(quotient_up(n, threads * width))},
        threads};
    launch(sum_tokens<T, G>, grid, call.stream, of);
  });
}

}  // namespace orrery::executor::cuda
