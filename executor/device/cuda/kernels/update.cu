// The optimizer's kernels over a range of parameters.

#include "executor/device/adam.hpp"
#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// Blocks that saturate the memory of the largest GPU; a constant, so that the sum has the same
/// order on all of them.
constexpr std::int64_t most_blocks = 132 * 8;

std::int64_t blocks_of_sum(std::int64_t n) {
  return std::clamp<std::int64_t>(quotient_up(n, block_threads * 16), 1, most_blocks);
}

/// partial[block] = sum of g g over every gridDim-th piece of the range, in fp64.
template <class T, int width>
__global__ void __launch_bounds__(block_threads)
    sum_squares(const T* gradient, std::int64_t n, double* partial) {
  double sum = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x * width;
#pragma unroll 4
  for (std::int64_t at = thread_of_grid() * width; at < n; at += stride) {
    const auto pack = load<width>(gradient, at, n, true);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const auto g = widen_to<double>(pack.of[j]);
      sum += g * g;
    }
  }
  sum = of_group(sum, block_threads, Sum{});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// sum += partial sums; one block.
template <class S>
__global__ void __launch_bounds__(block_threads)
    add_partial(const double* partial, int count, S* to) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < static_cast<unsigned>(count); i += block_threads) {
    sum += partial[i];
  }
  sum = of_group(sum, block_threads, Sum{});
  if (threadIdx.x == 0) *to = from_float<S>(widen_to<double>(*to) + sum);
}

/// adam_step on a range. Moments may be stored narrower than they are computed; a working copy in
/// another format, if any, is set to the new master weight. The gradient is set to 0.
template <class G, class S, class M, class W, int width>
struct Adam {
  AdamNumbers<S> numbers;
  std::int64_t n;
  S* weight;
  M* first;
  M* second;
  G* gradient;
  W* working;  // or null

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t at = i * width;
    const auto g = load<width>(gradient, at, n, true);
    auto w = load<width>(weight, at, n, true);
    auto m = load<width>(first, at, n, true);
    auto v = load<width>(second, at, n, true);
    Pack<W, width> copy{};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      S mean = widen_to<S>(m.of[j]), square = widen_to<S>(v.of[j]);
      adam_step(numbers, widen_to<S>(g.of[j]) * numbers.scale, w.of[j], mean, square);
      m.of[j] = from_float<M>(mean);
      v.of[j] = from_float<M>(square);
      copy.of[j] = from_float<W>(w.of[j]);
    }
    store(w, weight, at, n, true);
    store(m, first, at, n, true);
    store(v, second, at, n, true);
    store(Pack<G, width>{}, gradient, at, n, true);
    if (working != nullptr) store(copy, working, at, n, true);
  }
};

template <class G, class S, class M, class W>
void run_adam(const Call& call) {
  const std::int64_t n = call.in(0).elements();
  S* weight = call.write<S>(0);
  M* first = call.write<M>(1);
  M* second = call.write<M>(2);
  G* gradient = call.write<G>(3);
  W* working = call.write<W>(4);
  const AdamNumbers<S> numbers{call.kernel.adam};
  with_width(
      [&]<int width>(Width<width>) {
        launch_for_each(
            quotient_up(n, width), call.stream,
            Adam<G, S, M, W, width>{numbers, n, weight, first, second, gradient, working});
      },
      weight, first, second, gradient, working);
}

}  // namespace

std::int64_t squared_norm_scratch(const View& gradient) {
  return blocks_of_sum(gradient.elements()) * static_cast<std::int64_t>(sizeof(double));
}

/// sum += g g
void squared_norm(const Call& call) {
  const std::int64_t n = call.in(0).elements(), blocks = blocks_of_sum(n);
  auto* partial = reinterpret_cast<double*>(call.scratch);
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    const T* gradient = call.read<T>(0);
    with_width(
        [&]<int width>(Width<width>) {
          launch(sum_squares<T, width>, {static_cast<unsigned>(blocks), block_threads}, call.stream,
                 gradient, n, partial);
        },
        gradient);
  });
  with_format(call.out(0).dtype, [&]<class S>(Type<S>) {
    launch(add_partial<S>, {1, block_threads}, call.stream, partial, static_cast<int>(blocks),
           call.write<S>(0));
  });
}

/// For master weights in S; moments may be stored in bf16.
template <class G, class S, class W>
void run_adam(const Call& call) {
  const bool narrow = call.out(1).dtype == models::DType::bf16;
  narrow ? run_adam<G, S, Bf16, W>(call) : run_adam<G, S, S, W>(call);
}

/// The master weight is in fp32 or fp64; a working copy is in the gradient's narrow format, or in a
/// narrow one next to gradients in fp32.
void adam(const Call& call) {
  if (call.in(2).dtype == models::DType::uint8) return adam_in_8_bits(call);
  if (call.out(0).dtype == models::DType::fp64) return run_adam<double, double, double>(call);
  const models::DType working = call.has_out(4) ? call.out(4).dtype : models::DType::fp32;
  with_formats(working, call.out(3).dtype, [&]<class W, class G>(Type<W>, Type<G>) {
    if constexpr (sizeof(W) < 8) run_adam<G, float, W>(call);
  });
}

}  // namespace orrery::executor::cuda
