// OpKind::quantise: finds a tensor's largest magnitude, then encodes its numbers in fp8 with the
// scale that follows from it; or encodes them in blocks (block_scaled.cu), or writes the largest
// magnitude alone.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/block_scaled.hpp"
#include "executor/device/cuda/kernels/fp8/fp8_code.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// Parts, one per block, in which a tensor is searched: four blocks for each multiprocessor of the
/// largest GPU; few, as every block that quantises reads all of their results.
constexpr std::int64_t most_parts = 132 * 4;
constexpr std::int64_t most_quantising = 132 * 8;

std::int64_t parts_of_search(std::int64_t count) {
  return std::clamp<std::int64_t>(quotient_up(count, block_threads * 32), 1, most_parts);
}

__global__ void __launch_bounds__(block_threads)
    find_largest(const Bf16* from, std::int64_t count, std::uint32_t* parts, bool aligned) {
  constexpr int width = per_access<Bf16>;
  std::uint32_t largest = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * block_threads * width;
#pragma unroll 4
  for (std::int64_t at = thread_of_grid() * width; at < count; at += stride) {
    const auto pack = load<width>(from, at, count, aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      largest = larger(largest, __float_as_uint(to_float(pack.of[j])) & 0x7fffffffU);
    }
  }
  largest = of_group(largest, block_threads, Largest{});
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    quantise_all(const Bf16* from, std::int64_t count, Magnitudes magnitudes, std::uint8_t* to,
                 float* inverse, bool aligned) {
  const Quantiser<F> quantiser{from, count, magnitudes, inverse, aligned};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * block_threads * 16;
  for (std::int64_t at = thread_of_grid() * 16; at < count; at += stride) {
    store(quantiser(at), to, at, count, aligned);
  }
}

__global__ void __launch_bounds__(block_threads) join_largest(Magnitudes magnitudes, float* to) {
  const std::uint32_t largest = largest_of(magnitudes);
  if (threadIdx.x == 0) *to = __uint_as_float(largest);
}

const Bf16* numbers_of(const View& from) {
  ensure(from.dtype == models::DType::bf16, "the GPU quantises only bf16");
  return reinterpret_cast<const Bf16*>(from.data);
}

}  // namespace

std::int64_t magnitudes_bytes(std::int64_t count) {
  return parts_of_search(count) * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

Magnitudes find_magnitudes(const View& from, Stream stream, std::byte* parts) {
  const Bf16* numbers = numbers_of(from);
  auto* found = reinterpret_cast<std::uint32_t*>(parts);
  const auto count = static_cast<unsigned>(parts_of_search(from.elements()));
  launch(find_largest, {count, block_threads}, stream, numbers, from.elements(), found,
         on_16_bytes(numbers));
  return {found, static_cast<int>(count)};
}

void quantise(const View& from, const Magnitudes& magnitudes, Fp8 format, std::byte* to,
              float* inverse, Stream stream) {
  const Bf16* numbers = numbers_of(from);
  auto* codes = reinterpret_cast<std::uint8_t*>(to);
  const std::int64_t wanted = quotient_up(from.elements(), block_threads * 16);
  const Grid grid{static_cast<unsigned>(std::min(wanted, most_quantising)), block_threads};
  with_fp8_format(format, [&](auto of) {
    launch(quantise_all<decltype(of)>, grid, stream, numbers, from.elements(), magnitudes, codes,
           inverse, on_16_bytes(numbers, codes));
  });
}

std::int64_t quantise_scratch(const View& from) {
  return magnitudes_bytes(from.elements());
}

void quantise(const Call& call) {
  const bool in_blocks = call.has_out(1);
  Magnitudes magnitudes;
  if (!in_blocks || call.out(0).dtype == models::DType::fp4) {
    magnitudes = find_magnitudes(call.in(0), call.stream, call.scratch);
  }
  if (call.out(0).dtype == models::DType::fp32) {
    return launch(join_largest, {1, block_threads}, call.stream, magnitudes, call.write<float>(0));
  }
  if (in_blocks) {
    quantise_blocks(call.in(0), magnitudes, BlocksAlong::rows, {call.out(0), call.out(1)},
                    call.stream);
    if (!call.has_out(2)) return;
    return quantise_blocks(call.in(0), magnitudes, BlocksAlong::columns, {call.out(2), call.out(3)},
                           call.stream);
  }
  quantise(call.in(0), magnitudes, fp8_written(call.operation()), call.out(0).data,
           fp8_inverse_scale(call.out(0)), call.stream);
}

}  // namespace orrery::executor::cuda
