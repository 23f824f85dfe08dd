// Adam with 8-bit moments (executor/device/eight_bits.hpp): one block of threads for each of their
// blocks of numbers, one number per thread.

#include <algorithm>

#include "executor/device/adam.hpp"
#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/eight_bits.hpp"

namespace orrery::executor::cuda {

namespace {

constexpr int block = static_cast<int>(eight_bit_block);

/// The numbers that codes of either moment stand for; a launch takes both tables by value.
struct Tables {
  float of[2][256];
};

Tables make_tables() {
  Tables made{};
  const EightBitTable& first = eight_bit_table(EightBit::either_sign);
  const EightBitTable& second = eight_bit_table(EightBit::positive);
  std::copy(first.begin(), first.end(), made.of[0]);
  std::copy(second.begin(), second.end(), made.of[1]);
  return made;
}

/// The code of the table's nearest number, the lower one on a tie.
__device__ inline std::uint8_t nearest(const float* table, float number) {
  int above = 1;  // first entry, from 1 on, that is not less than the number
  for (int step = 128; step > 0; step /= 2) {
    const bool less = above + step - 1 < 255 && table[above + step - 1] < number;
    if (less) above += step;
  }
  const bool lower = number - table[above - 1] <= table[above] - number;
  return static_cast<std::uint8_t>(above - (lower ? 1 : 0));
}

template <class G, class S, class W>
struct EightBitAdam {
  AdamNumbers<S> numbers;
  std::int64_t n;
  S* weight;
  std::uint8_t* codes[2];
  float* scales[2];  // of each block
  G* gradient;
  W* working;  // or null
  Tables tables;
};

/// Encodes a block whose threads have one number each; sets its new scale, returns this thread's
/// code.
template <class S>
__device__ std::uint8_t to_eight_bits(const float* table, S moment, bool holds, float& scale) {
  const auto number = static_cast<float>(moment);
  scale = of_group(holds ? std::abs(number) : 0.0F, block, Largest{});
  return nearest(table, scale > 0 ? number / scale : 0.0F);
}

template <class G, class S, class W>
__global__ void __launch_bounds__(block) adam_on_eight_bits(EightBitAdam<G, S, W> of) {
  __shared__ float table[2][block];
  const auto thread = static_cast<int>(threadIdx.x);
  for (int m = 0; m < 2; ++m) table[m][thread] = of.tables.of[m][thread];
  __syncthreads();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * block + thread;
  const bool holds = at < of.n;
  S moment[2] = {};
  for (int m = 0; m < 2; ++m) {
    if (holds) moment[m] = static_cast<S>(table[m][of.codes[m][at]] * of.scales[m][blockIdx.x]);
  }
  if (holds) {
    S w = of.weight[at];
    adam_step(of.numbers, widen_to<S>(of.gradient[at]) * of.numbers.scale, w, moment[0], moment[1]);
    of.weight[at] = w;
    of.gradient[at] = from_float<G>(S{});
    if (of.working != nullptr) of.working[at] = from_float<W>(w);
  }
  for (int m = 0; m < 2; ++m) {
    float scale = 0;
    const std::uint8_t code = to_eight_bits(table[m], moment[m], holds, scale);
    if (holds) of.codes[m][at] = code;
    __syncthreads();  // every thread has read the old scale
    if (thread == 0) of.scales[m][blockIdx.x] = scale;
  }
}

template <class G, class S, class W>
void run_in_8_bits(const Call& call, bool copies) {
  const std::size_t scales = copies ? 5 : 4;
  EightBitAdam<G, S, W> of{AdamNumbers<S>{call.kernel.adam},
                           call.in(0).elements(),
                           call.write<S>(0),
                           {call.write<std::uint8_t>(1), call.write<std::uint8_t>(2)},
                           {call.write<float>(scales), call.write<float>(scales + 1)},
                           call.write<G>(3),
                           copies ? call.write<W>(4) : nullptr,
                           make_tables()};
  const auto blocks = static_cast<unsigned>(quotient_up(of.n, eight_bit_block));
  launch(adam_on_eight_bits<G, S, W>, {blocks, static_cast<unsigned>(block)}, call.stream, of);
}

}  // namespace

/// The scales of both moments are the last operands.
void adam_in_8_bits(const Call& call) {
  const bool copies = call.kernel.writes.size() == 7;
  if (call.out(0).dtype == models::DType::fp64) {
    return run_in_8_bits<double, double, double>(call, copies);
  }
  with_formats(copies ? call.out(4).dtype : models::DType::fp32, call.out(3).dtype,
               [&]<class W, class G>(Type<W>, Type<G>) {
                 if constexpr (sizeof(W) < 8) run_in_8_bits<G, float, W>(call, copies);
               });
}

}  // namespace orrery::executor::cuda
