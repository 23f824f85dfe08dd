// Residual sums and biases, element by element. A thread has one pack of an output row.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// Which row of b is added to row i of a: the i-th, or that of its position. By default row i has
/// position (first + i) mod sequence.
struct RowsOfSum {
  bool by_position = false;
  std::int64_t first = 0, sequence = 1;
  const std::int64_t* positions = nullptr;  // of tokens of a sequence; null: in order

  RowsOfSum() = default;
  explicit RowsOfSum(const Call& call)
      : by_position{call.operation().by_position()},
        first{call.kernel.place.first_row},
        sequence{call.kernel.place.sequence},
        positions{call.tokens.positions} {}
  __device__ std::int64_t row_of(std::int64_t i) const {
    if (!by_position) return i;
    const std::int64_t token = divided(first + i, sequence).remainder;
    return positions == nullptr ? token : positions[token];
  }
};

/// out = a + b [+ a bias, or rows of another branch]
template <class T>
struct Add {
  Packs packs;
  RowsOfSum rows;
  const T* a;
  const T* b;
  const T* bias;  // or null
  T* out;
  bool branch = false;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    constexpr int width = per_access<T>;
    const auto [row, at] = packs.place<T>(i);
    auto x = packs.load(a, row, at);
    const auto y = packs.load(b, rows.row_of(row), at);
    Pack<T, width> more{};
    if (bias != nullptr) more = packs.load(bias, branch ? row : 0, at);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      C sum = widen_to<C>(x.of[j]) + widen_to<C>(y.of[j]);
      if (bias != nullptr) sum += widen_to<C>(more.of[j]);
      x.of[j] = from_float<T>(sum);
    }
    packs.store(x, out, row, at);
  }
};

/// table[position] += gradient rows of that position, in their order; one thread for each pack of a
/// row of the table. With a token map several tokens of a sequence may have the same position, so
/// the thread looks at all rows.
template <class T, class G>
struct AddToTable {
  Packs packs;  // rows: positions that occur
  RowsOfSum rows;
  std::int64_t count = 0;  // rows of the gradient
  const T* gradient;
  G* table;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    constexpr int width = per_access<T>;
    const auto [place, at] = packs.place<T>(i);
    const bool mapped = rows.positions != nullptr;
    const std::int64_t own = mapped ? place : rows.row_of(place);
    auto there = load<width>(table + own * packs.n, at, packs.n, packs.aligned);
    C sum[width];
#pragma unroll
    for (int j = 0; j < width; ++j) sum[j] = widen_to<C>(there.of[j]);
    for (std::int64_t r = mapped ? 0 : place; r < count; r += mapped ? 1 : rows.sequence) {
      if (mapped && rows.row_of(r) != own) continue;
      const auto pack = packs.load(gradient, r, at);
#pragma unroll
      for (int j = 0; j < width; ++j) sum[j] += widen_to<C>(pack.of[j]);
    }
#pragma unroll
    for (int j = 0; j < width; ++j) there.of[j] = from_float<G>(sum[j]);
    packs.store(there, table, own, at);
  }
};

}  // namespace

void add(const Call& call) {
  if (call.operation().sequence().merges) return merge(call);
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  const RowsOfSum of{call};
  with_format(call.out(0).dtype, [&]<class T>(Type<T>) {
    const T* a = call.read<T>(0);
    const T* b = call.read<T>(1);
    const T* bias = call.read<T>(2);
    T* out = call.write<T>(0);
    const bool one_line = bias == nullptr && !of.by_position;
    const Packs packs = one_line ? Packs{1, rows * n, per_access<T>, a, b, out}
                                 : Packs{rows, n, per_access<T>, a, b, bias, out};
    const bool branch =
        bias != nullptr && rows > 1 && !of.by_position && call.in(2).shape[1] == rows;
    packs.launch(call.stream, Add<T>{packs, of, a, b, bias, out, branch});
  });
}

void add_row(const View& row, const View& to, Stream stream) {
  const std::int64_t rows = to.shape[1], n = to.shape[2];
  with_format(to.dtype, [&]<class T>(Type<T>) {
    auto* out = reinterpret_cast<T*>(to.data);
    const auto* bias = reinterpret_cast<const T*>(row.data);
    RowsOfSum one;  // a table with one row, which all rows of the result use
    one.by_position = true;
    const Packs packs{rows, n, per_access<T>, bias, out};
    packs.launch(stream, Add<T>{packs, one, out, bias, nullptr, out});
  });
}

/// Adds to the gradient of a bias (a sum over rows), or of the position table's rows [and of the
/// segment table's first row].
void add_backward(const Call& call) {
  const RowsOfSum positions{call};
  if (!positions.by_position) {
    return column_sums(call.in(0), call.out(0), call.stream, call.scratch);
  }
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  with_formats(call.in(0).dtype, call.out(0).dtype, [&]<class T, class G>(Type<T>, Type<G>) {
    const T* dy = call.read<T>(0);
    G* table = call.write<G>(0);
    const bool mapped = positions.positions != nullptr;
    const std::int64_t own = mapped ? call.out(0).shape[1] : std::min(rows, positions.sequence);
    const Packs packs{own, n, per_access<T>, dy, table};
    packs.launch(call.stream, AddToTable<T, G>{packs, positions, rows, dy, table});
  });
  if (!call.has_out(1)) return;
  View segment = call.out(1);  // all tokens are in the first segment
  segment.shape[1] = 1;
  column_sums(call.in(0), segment, call.stream, call.scratch);
}

}  // namespace orrery::executor::cuda
