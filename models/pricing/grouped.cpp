#include "models/pricing/grouped.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::models {

namespace {

constexpr std::int64_t tile_rows = 128;  // of a result
constexpr std::int64_t tile_depth = 64;  // rows that a weight gradient's tile sums over at a time

std::int64_t filled_up(std::int64_t rows, std::int64_t tile) {
  return (rows + tile - 1) / tile * tile;
}

/// Rows in use among an expert's slots; an operation's FLOPs count only those.
std::int64_t rows_in(std::int64_t slots, const Operation& op) {
  const Flops all = multiplied<Flops>(2, op.gemm().m, op.gemm().n, op.gemm().k);
  if (op.flops >= all) return slots;
  return std::llround(static_cast<double>(slots) * ratio(op.flops, all));
}

/// FLOPs of one row of an expert.
std::int64_t row_flops(const GemmShape& shape) {
  return 2 * shape.n * (shape.transpose_a ? shape.m : shape.k);
}

Time one_after_another(const Operation& op, const hardware::Gpu& gpu) {
  const std::int64_t all = op.gemm().transpose_a ? op.gemm().k : op.gemm().m;
  Time sum{};
  for (const std::int64_t slots : op.group_rows()) {
    const std::int64_t rows = rows_in(slots, op);
    if (rows == 0) continue;
    const double share = static_cast<double>(slots) / static_cast<double>(all);
    const Bytes bytes = nearest_count<Bytes>(share * static_cast<double>(op.bytes.count()));
    sum += gpu.gemm_time(op.dtype, Flops{row_flops(op.gemm()) * rows}, bytes);
  }
  return sum;
}

}  // namespace

Time grouped_time(const Operation& op, const hardware::Gpu& gpu) {
  if (gpu.generation.host_cores || op.module.kernels > 1) return one_after_another(op, gpu);
  const std::int64_t tile = op.gemm().transpose_a ? tile_depth : tile_rows;
  std::int64_t rows = 0;
  for (const std::int64_t each : op.group_rows()) rows += filled_up(rows_in(each, op), tile);
  return gpu.gemm_time(op.dtype, Flops{row_flops(op.gemm()) * rows}, op.bytes);
}

std::int64_t experts_with_rows(const Operation& op) {
  return std::ranges::count_if(op.group_rows(),
                               [&](std::int64_t slots) { return rows_in(slots, op) > 0; });
}

hardware::GemmSize mean_product(const Operation& op) {
  const auto experts = static_cast<std::int64_t>(op.group_rows().size());
  const auto mean = [&](std::int64_t rows) {
    return std::max<std::int64_t>(
        1, (rows_in(rows, op) + experts / 2) / std::max<std::int64_t>(1, experts));
  };
  const GemmShape& s = op.gemm();
  if (s.transpose_a) return {s.m, s.n, mean(s.k)};
  return {mean(s.m), s.n, s.k};
}

}  // namespace orrery::models
