// The k largest gradients by magnitude, by radix selection. Magnitudes are ordered as their bits
// are, so the k-th largest is found digit by digit from the top: among the numbers that agree with
// the digits found so far, a histogram of the next digit says which one it has. Then all numbers
// above it, and the earliest of those that equal it, are written in order.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr int digit_bits = 8, digits = 1 << digit_bits;
constexpr std::int64_t tile = block_threads * 8;  // numbers of one block, eight of each thread

using Count = unsigned long long;

/// What is known of the k-th largest magnitude.
struct TopKSearch {
  std::uint64_t bits = 0;  // its digits so far, at their places
  Count left = 0;          // how many are to be taken of those that agree with them
  Count counts[digits] = {};
};

/// How many numbers before a tile are above the k-th largest, and how many equal it.
struct Ahead {
  Count above = 0, equal = 0;
};

/// The bits without the sign; those of NaN are infinity's, so that the earlier of them is taken.
__device__ inline std::uint64_t magnitude(float value) {
  return smaller<std::uint64_t>(__float_as_uint(value) & 0x7fffffffU, 0x7f800000U);
}
__device__ inline std::uint64_t magnitude(double value) {
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(value));
  return smaller<std::uint64_t>(bits & 0x7fffffffffffffffULL, 0x7ff0000000000000ULL);
}

__global__ void begin_search(TopKSearch* search, Count k) {
  search->counts[threadIdx.x] = 0;
  if (threadIdx.x > 0) return;
  search->bits = 0;
  search->left = k;
}

/// Histogram of the digit at `shift`, of the numbers that agree with the search in all digits
/// above.
template <class S>
__global__ void __launch_bounds__(digits)
    count_digits(const S* values, std::int64_t n, int shift, TopKSearch* search) {
  __shared__ unsigned counts[digits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const std::uint64_t bits = search->bits;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = thread_of_grid(); i < n; i += stride) {
    const std::uint64_t of = magnitude(values[i]);
    const bool agrees = shift + digit_bits == 8 * sizeof(S) ||
                        of >> (shift + digit_bits) == bits >> (shift + digit_bits);
    if (agrees) atomicAdd(&counts[of >> shift & (digits - 1)], 1U);
  }
  __syncthreads();
  if (counts[threadIdx.x] > 0) atomicAdd(&search->counts[threadIdx.x], counts[threadIdx.x]);
}

/// Finds the k-th largest's digit and clears the counts; one thread.
__global__ void choose_digit(TopKSearch* search, int shift) {
  Count above = 0;
  int digit = digits - 1;
  while (digit > 0 && above + search->counts[digit] < search->left)
    above += search->counts[digit--];
  search->left -= above;
  search->bits |= static_cast<std::uint64_t>(digit) << shift;
  for (int i = 0; i < digits; ++i) search->counts[i] = 0;
}

/// How many of a thread's numbers, from `first` on, are above the k-th largest, and how many equal
/// it.
template <class S>
__device__ Ahead counted(const S* values, std::int64_t n, std::int64_t first, std::uint64_t bits) {
  Ahead of;
  for (std::int64_t i = first; i < smaller<std::int64_t>(first + tile / block_threads, n); ++i) {
    of.above += magnitude(values[i]) > bits ? 1 : 0;
    of.equal += magnitude(values[i]) == bits ? 1 : 0;
  }
  return of;
}

__device__ inline std::int64_t first_of_thread() {
  return blockIdx.x * tile + threadIdx.x * (tile / block_threads);
}

template <class S>
__global__ void __launch_bounds__(block_threads)
    count_tile(const S* values, std::int64_t n, const TopKSearch* search, Ahead* tiles) {
  Ahead of = counted(values, n, first_of_thread(), search->bits);
  of.above = of_group(of.above, block_threads, Sum{});
  of.equal = of_group(of.equal, block_threads, Sum{});
  if (threadIdx.x == 0) tiles[blockIdx.x] = of;
}

/// The sum over all threads of the block before the caller; `total` is the sum over the whole
/// block.
__device__ inline Count ahead_in_block(Count value, Count& total) {
  __shared__ Count sums[block_threads];
  __syncthreads();
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned by = 1; by < block_threads; by *= 2) {
    const Count more = threadIdx.x >= by ? sums[threadIdx.x - by] : 0;
    __syncthreads();
    sums[threadIdx.x] += more;
    __syncthreads();
  }
  total = sums[block_threads - 1];
  return sums[threadIdx.x] - value;
}

/// tiles[i] = sum of the tiles before it; one block.
__global__ void __launch_bounds__(block_threads) sum_tiles(Ahead* tiles, std::int64_t count) {
  Ahead before;
  for (std::int64_t first = 0; first < count; first += block_threads) {
    const std::int64_t i = first + threadIdx.x;
    const Ahead of = i < count ? tiles[i] : Ahead{};
    Ahead total;
    const Count above = ahead_in_block(of.above, total.above);
    const Count equal = ahead_in_block(of.equal, total.equal);
    if (i < count) tiles[i] = {before.above + above, before.equal + equal};
    before.above += total.above;
    before.equal += total.equal;
  }
}

/// Writes the numbers that are taken, in order: each after all numbers before it that are above the
/// k-th largest, and those before it that equal it and are taken.
template <class S, class G>
__global__ void __launch_bounds__(block_threads)
    take_largest(S* residual, std::int64_t n, const TopKSearch* search, const Ahead* tiles,
                 G* values, std::int32_t* places) {
  const std::uint64_t bits = search->bits;
  const Count equals = search->left;
  const std::int64_t first = first_of_thread();
  const Ahead own = counted(residual, n, first, bits);
  Ahead total, ahead = tiles[blockIdx.x];
  ahead.above += ahead_in_block(own.above, total.above);
  ahead.equal += ahead_in_block(own.equal, total.equal);
  for (std::int64_t i = first; i < smaller<std::int64_t>(first + tile / block_threads, n); ++i) {
    const std::uint64_t of = magnitude(residual[i]);
    const bool equal = of == bits, taken = of > bits || (equal && ahead.equal < equals);
    if (taken) {
      const Count at = ahead.above + smaller(ahead.equal, equals);
      values[at] = from_float<G>(residual[i]);
      places[at] = static_cast<std::int32_t>(i);
      residual[i] = S{};
    }
    ahead.above += of > bits ? 1 : 0;
    ahead.equal += equal ? 1 : 0;
  }
}

template <class G, class S>
struct AddResidual {
  const G* gradient;
  const S* before;
  S* residual;

  __device__ void operator()(std::int64_t i) const {
    residual[i] = before[i] + widen_to<S>(gradient[i]);
  }
};

template <class G, class S>
void run_top_k(const Call& call) {
  const std::int64_t n = call.in(0).elements(), k = call.out(0).elements();
  const std::int64_t tiles = quotient_up(n, tile);
  auto* search = reinterpret_cast<TopKSearch*>(call.scratch);
  auto* ahead = reinterpret_cast<Ahead*>(search + 1);
  S* residual = call.write<S>(2);
  launch_for_each(n, call.stream, AddResidual<G, S>{call.read<G>(0), call.read<S>(1), residual});
  if (k == 0) return;
  launch(begin_search, {1, digits}, call.stream, search, static_cast<Count>(k));
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 132 * 8));
  for (int shift = 8 * static_cast<int>(sizeof(S)) - digit_bits; shift >= 0; shift -= digit_bits) {
    launch(count_digits<S>, {blocks, digits}, call.stream, residual, n, shift, search);
    launch(choose_digit, {1, 1}, call.stream, search, shift);
  }
  const Grid grid{static_cast<unsigned>(tiles), block_threads};
  launch(count_tile<S>, grid, call.stream, residual, n, search, ahead);
  launch(sum_tiles, {1, block_threads}, call.stream, ahead, tiles);
  launch(take_largest<S, G>, grid, call.stream, residual, n, search, ahead, call.write<G>(0),
         call.write<std::int32_t>(1));
}

}  // namespace

std::int64_t top_k_scratch(const View& gradient) {
  const std::int64_t tiles = quotient_up(gradient.elements(), tile);
  return static_cast<std::int64_t>(sizeof(TopKSearch)) +
         tiles * static_cast<std::int64_t>(sizeof(Ahead));
}

/// Top-k compression with error feedback: of gradient + residual, writes the k largest by magnitude
/// and their places, ascending; the rest is the new residual. The earlier of equals is taken.
/// Source  Lin et al. 2018, arXiv 1712.01887; error feedback as there
void top_k(const Call& call) {
  if (call.out(2).dtype == models::DType::fp64) return run_top_k<double, double>(call);
  with_format(call.in(0).dtype, [&]<class G>(Type<G>) {
    if constexpr (sizeof(G) < 8) run_top_k<G, float>(call);
  });
}

}  // namespace orrery::executor::cuda
