// Fused attention, backward: the kernel of row statistics, and the launches of all three kernels.

#include "executor/device/cuda/attention/flash_backward.hpp"
#include "executor/device/cuda/attention/flash_tiles.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/pack_code.hpp"

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

template <class T>
void launch_statistics(const Call& call, const BackwardOperands<T>& x, Statistic* statistics) {
  constexpr unsigned rows_of_block = block_threads / 16;
  const std::int64_t rows = static_cast<std::int64_t>(x.sizes.batch) * x.sizes.heads * x.rows;
  launch(row_statistics<T>, {static_cast<unsigned>(rows / rows_of_block), block_threads},
         call.stream, x.sizes, x.rows, call.read<T>(1), x.d_out, call.read<float>(2), statistics);
}

}  // namespace

void flash_backward(const Call& call) {
  const models::AttentionShape& shape = call.operation().attention;
  auto* statistics = reinterpret_cast<Statistic*>(call.scratch);
  with_tensor_cores(call, [&](auto type, auto dim) {
    using T = typename decltype(type)::type;
    const BackwardOperands<T> x{.sizes = AttentionSizes{shape},
                                .rows = static_cast<int>(statistics_rows(shape)),
                                .qkv = call.read<T>(0),
                                .d_out = call.read<T>(3),
                                .statistics = statistics,
                                .d_qkv = call.write<T>(0)};
    launch_statistics(call, x, statistics);
    launch_key_gradients<T, dim>(x, call.stream);
    launch_query_gradients<T, dim>(x, call.stream);
  });
}

}  // namespace orrery::executor::cuda
