// Layer norms and RMS norms, of whole rows or of each query and key head.

#include "executor/cuda/call.hpp"
#include "executor/cuda/columns.hpp"
#include "executor/cuda/rows.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr unsigned most_lanes = 512;

/// Packs of a row that a thread keeps backward, where it sums up gradients of as many columns: up
/// to 8,192 columns of 16 bits in all. Sums of columns beyond them go through the cache.
constexpr int held_backward = 2;

/// Threads of the backward pass: 512 on each of an H100's 132 multiprocessors; a constant, so that
/// sums have the same order on every GPU.
constexpr std::int64_t backward_threads = 132 * 512;

enum class Mean : std::uint8_t { taken_off, kept };

template <class C>
struct Statistics {
  C mean, inverse;
};

/// mean and 1 / sqrt(variance + epsilon); the mean is 0 where none is taken off.
template <class T, int held>
__device__ Statistics<Compute<T>> statistics_of(const Row<T, held>& x, const RowPlace& place, int n,
                                                Mean kind, Compute<T> epsilon) {
  using C = Compute<T>;
  C mean{};
  if (kind == Mean::taken_off) {
    C sum{};
    x.visit([&](int, const auto& pack, int) {  // zeros outside of the row
#pragma unroll
      for (int j = 0; j < Row<T>::width; ++j) sum += widen_to<C>(pack.of[j]);
    });
    mean = of_group(sum, place.lanes, Sum{}) / static_cast<C>(n);
  }
  C squares{};
  x.visit([&](int at, const auto& pack, int) {
#pragma unroll
    for (int j = 0; j < Row<T>::width; ++j) {
      const C centred = widen_to<C>(pack.of[j]) - mean;
      if (place.has(at + j)) squares += centred * centred;
    }
  });
  const C variance = of_group(squares, place.lanes, Sum{}) / static_cast<C>(n);
  return {mean, C(1) / root(variance + epsilon)};
}

template <class T>
struct Forward {
  Rows rows;
  Mean mean;
  Compute<T> epsilon;
  const T* x;
  const T* weight;
  const T* bias;  // or null
  T* out;
};

/// y = (x - mean) / sqrt(variance + epsilon) weight [+ bias]
template <class T>
__global__ void __launch_bounds__(most_lanes) norm_rows(Forward<T> of) {
  using C = Compute<T>;
  constexpr int width = Row<T>::width;
  const RowPlace place = of.rows.place(of.rows.of_group(blockIdx.x));
  const Row<T> x{of.x, place};
  const Statistics<C> with = statistics_of(x, place, of.rows.n, of.mean, of.epsilon);
  x.visit([&](int at, auto pack, int) {
    const auto weight = load<width>(of.weight, at, place.n, of.rows.aligned);
    Pack<T, width> bias{};
    if (of.bias != nullptr) bias = load<width>(of.bias, at, place.n, of.rows.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const C z = (widen_to<C>(pack.of[j]) - with.mean) * with.inverse;
      pack.of[j] = from_float<T>(z * widen_to<C>(weight.of[j]) + widen_to<C>(bias.of[j]));
    }
    store(pack, of.out + place.first, at, place.n, place.aligned);
  });
}

template <class T>
struct Backward {
  Rows rows;
  Mean mean;
  Compute<T> epsilon;
  const T* gradient;
  const T* x;
  const T* weight;
  const T* residual;        // or null
  T* out;                   // may be the gradient
  Compute<T>* weight_sums;  // [groups, n]
  Compute<T>* bias_sums;    // or null
};

/// What a thread sums up for its columns: in registers for the packs that it holds, in its group's
/// row of sums for the others.
template <class T>
class ColumnSum {
 public:
  using C = Compute<T>;
  using Columns = Row<T, held_backward>;
  static constexpr int width = Columns::width;

  __device__ ColumnSum(C* sums, const Columns& columns, int n)
      : sums_{sums}, columns_{columns}, n_{n} {
    if (sums_ == nullptr) return;
    for (int at = columns_.first(held_backward); at < n_; at += columns_.stride()) {
      for (int j = 0; j < width && at + j < n_; ++j) sums_[at + j] = C{};
    }
  }
  __device__ void add(int at, int k, int j, C value) {
    if (k < held_backward) {
      held_[k][j] += value;
    } else if (sums_ != nullptr && at + j < n_) {
      sums_[at + j] += value;
    }
  }
  __device__ void write() const {
    if (sums_ == nullptr) return;
#pragma unroll
    for (int k = 0; k < held_backward; ++k) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (columns_.first(k) + j < n_) sums_[columns_.first(k) + j] = held_[k][j];
      }
    }
  }

 private:
  C* sums_;
  const Columns& columns_;
  int n_;
  C held_[held_backward][width] = {};
};

/// Asks for this thread's part of a row, which it will read in a while.
template <class T>
__device__ void expect(const T* matrix, const RowPlace& place) {
  constexpr int line = 128 / static_cast<int>(sizeof(T));
  if (matrix == nullptr) return;
  for (int at = static_cast<int>(place.lane) * line; at < place.n;
       at += static_cast<int>(place.lanes) * line) {
    prefetch(matrix + place.first + at);
  }
}

/// With g = dy weight and z the normalised x:
///   dx = (g - mean(g) - z mean(g z)) / deviation [+ residual];  dweight += dy z;  dbias += dy
/// RMS norms have no mean(g). A group of threads walks over rows and sums up for itself.
/// Source  derivative of the norm; Ba et al. 2016, arXiv 1607.06450; Zhang & Sennrich 2019
template <class T>
__global__ void __launch_bounds__(most_lanes) norm_backward_rows(Backward<T> of) {
  using C = Compute<T>;
  using Columns = Row<T, held_backward>;
  constexpr int width = Columns::width;
  const int n = of.rows.n;
  RowPlace nowhere;
  nowhere.lane = threadIdx.x % of.rows.lanes;
  nowhere.lanes = of.rows.lanes;
  const Columns columns{nullptr, nowhere};
  const std::int64_t own = of.rows.of_group(blockIdx.x) * n;
  ColumnSum<T> weight_sum{of.weight_sums + own, columns, n};
  ColumnSum<T> bias_sum{of.bias_sums == nullptr ? nullptr : of.bias_sums + own, columns, n};
  // Groups without a row left still take part in the sums of their block.
  for (std::int64_t pass = blockIdx.x; of.rows.of_block(pass) < of.rows.count; pass += gridDim.x) {
    const RowPlace place = of.rows.place(of.rows.of_group(pass));
    const RowPlace next = of.rows.place(of.rows.of_group(pass + gridDim.x));
    expect(of.x, next);
    expect(of.gradient, next);
    expect(of.residual, next);
    const Columns x{of.x, place}, dy{of.gradient, place};
    const Statistics<C> with = statistics_of(x, place, n, of.mean, of.epsilon);
    C sum_g{}, sum_gz{};
    x.visit([&](int at, const auto& pack, int k) {
      const auto weight = load<width>(of.weight, at, n, of.rows.aligned);
      const auto gradient = dy.pack(at, k);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        const C g = widen_to<C>(gradient.of[j]) * widen_to<C>(weight.of[j]);
        sum_g += g;
        sum_gz += g * (widen_to<C>(pack.of[j]) - with.mean) * with.inverse;
      }
    });
    const Two<C> sums = of_group(Two<C>{sum_g, sum_gz}, of.rows.lanes, Sum{});
    const C mean_g = of.mean == Mean::taken_off ? sums.a / static_cast<C>(n) : C{};
    const C mean_gz = sums.b / static_cast<C>(n);
    x.visit([&](int at, auto pack, int k) {
      const auto weight = load<width>(of.weight, at, n, of.rows.aligned);
      const auto gradient = dy.pack(at, k);
      Pack<T, width> residual{};
      if (of.residual != nullptr) {
        residual = load<width>(of.residual + place.first, at, n, place.aligned);
      }
#pragma unroll
      for (int j = 0; j < width; ++j) {
        const C z = (widen_to<C>(pack.of[j]) - with.mean) * with.inverse;
        const C g = widen_to<C>(gradient.of[j]);
        weight_sum.add(at, k, j, g * z);
        bias_sum.add(at, k, j, g);
        const C dx = (g * widen_to<C>(weight.of[j]) - mean_g - z * mean_gz) * with.inverse;
        pack.of[j] = from_float<T>(dx + widen_to<C>(residual.of[j]));
      }
      store(pack, of.out + place.first, at, n, place.aligned);
    });
  }
  weight_sum.write();
  bias_sum.write();
}

/// The columns that an operation norms: whole rows, or where its weight is [2, head_dim], one row
/// for queries and one for keys, the heads of those. Values pass.
struct Part {
  std::int64_t first = 0, heads = 1, n = 0;
};
struct Parts {
  Part of[2];
  int count = 1;
  std::int64_t passed = 0;  // columns behind them
};
Parts parts_of(const Call& call) {
  const std::int64_t columns = call.in(0).shape[2];
  if (call.operation().name.rfind("qk_norm", 0) != 0) return {{{0, 1, columns}, {}}, 1, 0};
  const models::Model& model = call.model();
  const std::int64_t all = columns / model.head_dim, shares = model.heads + 2 * model.kv_heads;
  const std::int64_t queries = all * model.heads / shares, keys = all * model.kv_heads / shares;
  const std::int64_t d = model.head_dim;
  return {{{0, queries, d}, {queries * d, keys, d}}, 2, keys * d};
}

/// Not shifted: a thread sums up the same columns of all its rows.
template <class T, class... Operands>
Rows rows_of(const Call& call, const Part& part, const RowShare& share,
             const Operands*... operands) {
  Rows rows;
  rows.columns = call.in(0).shape[2];
  rows.runs = part.heads;
  rows.count = call.in(0).shape[1] * part.heads;
  rows.n = static_cast<int>(part.n);
  rows.lanes = share.lanes;
  rows.aligned =
      on_16_bytes(operands...) && part.n % per_access<T> == 0 && rows.columns % per_access<T> == 0;
  return rows;
}

Mean mean_of(const Call& call) {
  return call.model().norm == models::Norm::layer_norm ? Mean::taken_off : Mean::kept;
}

/// Copies the last columns of every row.
template <class T>
struct Pass {
  const T* from;
  T* to;
  std::int64_t columns, passed;

  __device__ void operator()(std::int64_t i) const {
    const Division of = divided(i, passed);
    const std::int64_t at = (of.quotient + 1) * columns - passed + of.remainder;
    to[at] = from[at];
  }
};

template <class T>
void pass(const Call& call, const Parts& parts) {
  const T* from = call.read<T>(0);
  T* to = call.write<T>(0);
  if (parts.passed == 0 || from == to) return;
  launch_for_each(call.in(0).shape[1] * parts.passed, call.stream,
                  Pass<T>{from, to, call.in(0).shape[2], parts.passed});
}

RowShare backward_share(std::int64_t n, models::DType format) {
  return share_of_rows(n, 128 / bits(format), most_lanes, held_backward);
}
unsigned backward_blocks(std::int64_t rows, const RowShare& share) {
  return static_cast<unsigned>(
      std::min<std::int64_t>(blocks_of(rows, share), backward_threads / share.threads));
}

}  // namespace

void norm(const Call& call) {
  const Parts parts = parts_of(call);
  with_format(call.in(0).dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int p = 0; p < parts.count; ++p) {
      const Part& part = parts.of[p];
      const RowShare share = share_of_rows(part.n, per_access<T>, most_lanes);
      Forward<T> of{};
      of.mean = mean_of(call);
      of.epsilon = static_cast<Compute<T>>(call.operation().epsilon);
      of.x = call.read<T>(0) + part.first;
      of.weight = call.read<T>(1) + p * part.n;
      of.bias = call.read<T>(2);
      of.out = call.write<T>(0) + part.first;
      of.rows = rows_of<T>(call, part, share, of.x, of.weight, of.bias, of.out);
      launch(norm_rows<T>, {blocks_of(of.rows.count, share), share.threads}, call.stream, of);
    }
    pass<T>(call, parts);
  });
}

/// A row of sums for each group, of weights and of biases.
std::int64_t norm_backward_scratch(const View& x, const View& weight) {
  const std::int64_t n = weight.shape[2], compute = x.dtype == models::DType::fp64 ? 8 : 4;
  const RowShare share = backward_share(n, x.dtype);
  const std::int64_t groups = std::int64_t{backward_blocks(x.elements() / n, share)} * share.rows();
  return 2 * groups * n * compute;
}

void norm_backward(const Call& call) {
  const Parts parts = parts_of(call);
  with_formats(call.in(0).dtype, call.out(1).dtype, [&](auto type, auto sums) {
    using T = typename decltype(type)::type;
    using G = typename decltype(sums)::type;
    for (int p = 0; p < parts.count; ++p) {
      const Part& part = parts.of[p];
      const RowShare share = backward_share(part.n, call.in(0).dtype);
      Backward<T> of{};
      of.mean = mean_of(call);
      of.epsilon = static_cast<Compute<T>>(call.operation().epsilon);
      of.gradient = call.read<T>(0) + part.first;
      of.x = call.read<T>(1) + part.first;
      of.weight = call.read<T>(2) + p * part.n;
      of.residual = call.read<T>(3);
      of.out = call.write<T>(0) + part.first;
      of.rows = rows_of<T>(call, part, share, of.gradient, of.x, of.weight, of.residual, of.out);
      const unsigned blocks = backward_blocks(of.rows.count, share);
      const std::int64_t groups = std::int64_t{blocks} * share.rows();
      of.weight_sums = reinterpret_cast<Compute<T>*>(call.scratch);
      if (call.has_out(2)) of.bias_sums = of.weight_sums + groups * part.n;
      launch(norm_backward_rows<T>, {blocks, share.threads}, call.stream, of);
      const ColumnSums columns{groups, part.n, groups, narrow_tile, SumInto::added};
      sum_columns(of.weight_sums, call.write<G>(1) + p * part.n, columns, call.stream);
      if (call.has_out(2)) sum_columns(of.bias_sums, call.write<G>(2), columns, call.stream);
    }
    pass<T>(call, parts);
  });
}

}  // namespace orrery::executor::cuda
