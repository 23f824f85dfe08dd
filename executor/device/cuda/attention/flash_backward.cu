// Fused attention, backward: the kernel of row statistics, and the launches of all three kernels.

#include "executor/device/cuda/attention/flash_backward.hpp"
#include "executor/device/cuda/attention/flash_tiles.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// 16 lanes for each row, 8 columns each.
template <class T>
__global__ void row_statistics(AttentionSizes sizes, int rows, const T* out, const T* d_out,
                               const float* lse, Statistic* statistics) {
  const std::int64_t group = thread_of_grid() / 16;
  const int head = static_cast<int>(group % sizes.heads);
  const int row = static_cast<int>(group / sizes.heads % rows);
  const auto sequence = static_cast<int>(group / sizes.heads / rows);
  const int column = static_cast<int>(threadIdx.x % 16) * chunk_elements;
  float product = 0;
  if (row < sizes.mask.seq && column < sizes.head_dim) {
    using Chunk = Pack<T, chunk_elements>;
    const auto at = [&](const T* of) {
      return *reinterpret_cast<const Chunk*>(sizes.context(of, sequence, head).row(row) + column);
    };
    const Chunk o = at(out), d_o = at(d_out);
#pragma unroll
    for (int i = 0; i < chunk_elements; ++i) product += to_float(o.of[i]) * to_float(d_o.of[i]);
  }
  product = of_group(product, 16, Sum{});
  if (threadIdx.x % 16 != 0) return;
  const std::int64_t of_head = static_cast<std::int64_t>(sequence) * sizes.heads + head;
  const bool there = row < sizes.mask.seq;
  statistics[of_head * rows + row] = {
      there ? lse[of_head * sizes.mask.seq + row] * log2_of_e : INFINITY, product};
}

}  // namespace

void flash_backward(const Call& call) {
  with_tensor_cores(call, [&]<class T>(Type<T>, auto) {
    const BackwardOperands<T> x{call};
    const std::int64_t rows = static_cast<std::int64_t>(x.sizes.batch) * x.sizes.heads * x.rows;
    launch(row_statistics<T>, threads_for(16 * rows), call.stream, x.sizes, x.rows, call.read<T>(1),
           x.d_out, call.read<float>(2), x.statistics);
  });
  flash_key_gradients(call);
  flash_query_gradients(call);
}

}  // namespace orrery::executor::cuda
