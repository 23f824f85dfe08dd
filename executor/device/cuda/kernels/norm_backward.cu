// Gradients of norms: of their input row by row, of their weights and biases as sums over rows.

#include "executor/device/cuda/kernels/columns.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/norm_rows.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// Packs of a row that a thread keeps in backward, where it also sums the gradients of as many
/// columns: up to 8,192 columns of 16 bits in all. Sums of columns beyond them go through the
/// cache.
constexpr int held_backward = 2;

/// Threads of the backward pass: 512 on each of an H100's 132 multiprocessors; a constant, so that
/// sums have the same order on every GPU.
constexpr std::int64_t backward_threads = 132 * 512;

template <class T>
struct Backward {
  Rows rows;
  Mean mean;
  Compute<T> epsilon, offset;
  const T* gradient;
  const T* x;
  const T* weight;
  const T* residual;        // or null
  T* out;                   // may be the gradient
  Compute<T>* weight_sums;  // [groups, n], or null: frozen
  Compute<T>* bias_sums;    // or null
};

/// What a thread sums up for its columns: in registers for the packs that it holds, in its group's
/// row of sums for the others.
template <class T>
class ColumnSum {
 public:
  using C = Compute<T>;
  using Columns = RowValues<T, held_backward>;
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

/// Prefetches this thread's part of a row, which it reads in the next pass.
template <class T>
__device__ void expect(const T* matrix, const RowPlace& place) {
  constexpr int line = 128 / static_cast<int>(sizeof(T));
  if (matrix == nullptr) return;
  for (int at = static_cast<int>(place.lane) * line; at < place.n;
       at += static_cast<int>(place.lanes) * line) {
    prefetch(matrix + place.first + at);
  }
}

/// With g = dy (weight + offset) and z the normalised x:
///   dx = (g - mean(g) - z mean(g z)) / deviation [+ residual];  dweight += dy z;  dbias += dy
/// RMS norms have no mean(g). Each group of threads loops over rows and keeps sums of its own.
/// Source  derivative of the norm; Ba et al. 2016, arXiv 1607.06450; Zhang & Sennrich 2019
template <class T>
__global__ void __launch_bounds__(most_norm_lanes) norm_backward_rows(Backward<T> of) {
  using C = Compute<T>;
  using Columns = RowValues<T, held_backward>;
  constexpr int width = Columns::width;
  const int n = of.rows.n;
  RowPlace nowhere;
  nowhere.lane = threadIdx.x % of.rows.lanes;
  nowhere.lanes = of.rows.lanes;
  const Columns columns{nullptr, nowhere};
  const std::int64_t own = of.rows.of_group(blockIdx.x) * n;
  ColumnSum<T> weight_sum{of.weight_sums == nullptr ? nullptr : of.weight_sums + own, columns, n};
  ColumnSum<T> bias_sum{of.bias_sums == nullptr ? nullptr : of.bias_sums + own, columns, n};
  // Groups without a row left still take part in their block's reductions.
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
        const C g = widen_to<C>(gradient.of[j]) * (widen_to<C>(weight.of[j]) + of.offset);
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
        const C scale = widen_to<C>(weight.of[j]) + of.offset;
        const C dx = (g * scale - mean_g - z * mean_gz) * with.inverse;
        pack.of[j] = from_float<T>(dx + widen_to<C>(residual.of[j]));
      }
      store(pack, of.out + place.first, at, n, place.aligned);
    });
  }
  weight_sum.write();
  bias_sum.write();
}

RowShare backward_share(std::int64_t n, models::DType format) {
  return share_of_rows(n, 128 / bits(format), most_norm_lanes, held_backward);
}
unsigned backward_blocks(std::int64_t rows, const RowShare& share) {
  return static_cast<unsigned>(
      std::min<std::int64_t>(blocks_of(rows, share), backward_threads / share.threads));
}

}  // namespace

/// One row of sums for each group of threads, for weights and for biases.
std::int64_t norm_backward_scratch(const View& x, const View& weight) {
  const std::int64_t n = weight.shape[2], compute = x.dtype == models::DType::fp64 ? 8 : 4;
  const RowShare share = backward_share(n, x.dtype);
  const std::int64_t groups = std::int64_t{backward_blocks(x.elements() / n, share)} * share.rows();
  return 2 * groups * n * compute;
}

void norm_backward(const Call& call) {
  const Parts parts = parts_of(call, call.in(2));
  const bool trained = call.has_out(1);
  const models::DType sums_in = trained ? call.out(1).dtype : call.in(0).dtype;
  with_formats(call.in(0).dtype, sums_in, [&]<class T, class G>(Type<T>, Type<G>) {
    for (int p = 0; p < parts.count; ++p) {
      const Part& part = parts.of[p];
      const RowShare share = backward_share(part.n, call.in(0).dtype);
      Backward<T> of{};
      of.mean = mean_of(call);
      of.epsilon = static_cast<Compute<T>>(call.operation().epsilon());
      of.offset = static_cast<Compute<T>>(call.operation().offset());
      of.gradient = call.read<T>(0) + part.first;
      of.x = call.read<T>(1) + part.first;
      of.weight = call.read<T>(2) + p * part.n;
      of.residual = call.read<T>(3);
      of.out = call.write<T>(0) + part.first;
      of.rows = rows_of<T>(call, part, share, of.gradient, of.x, of.weight, of.residual, of.out);
      const unsigned blocks = backward_blocks(of.rows.count, share);
      const std::int64_t groups = std::int64_t{blocks} * share.rows();
      if (trained) of.weight_sums = reinterpret_cast<Compute<T>*>(call.scratch);
      if (call.has_out(2)) of.bias_sums = of.weight_sums + groups * part.n;
      launch(norm_backward_rows<T>, {blocks, share.threads}, call.stream, of);
      if (!trained) continue;
      const ColumnSums columns{groups, part.n, groups, narrow_tile, SumInto::added};
      sum_columns(of.weight_sums, call.write<G>(1) + p * part.n, columns, call.stream);
      if (call.has_out(2)) sum_columns(of.bias_sums, call.write<G>(2), columns, call.stream);
    }
    pass<T>(call, parts);
  });
}

}  // namespace orrery::executor::cuda
