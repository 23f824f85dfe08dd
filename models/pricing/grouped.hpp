#pragma once
// Grouped GEMMs: the matrix products of a rank's experts in one kernel, with a number of rows of
// its own for each expert.

#include "hardware/gpu/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::models {

/// Time of a grouped GEMM by the curve of dense GEMMs.
///   on a GPU   t = curve(2 n k sum_e ceil(rows_e / tile) tile, bytes): one grid holds the tiles
///              of all experts, so none waits for another's last wave, but a tile that its rows
///              do not fill takes as long as a full one
///   on a CPU   t = sum_e curve(2 n k rows_e, bytes_e): one GEMM after another
/// tile     128 rows of the result; 64 for a weight gradient, which sums over the rows
/// Source   NVIDIA CUTLASS 3, default tile of 16-bit GEMMs on Hopper: 128 x 128 x 64
/// Errors   a format without a peak: InputError
Time grouped_time(const Operation& op, const hardware::Gpu& gpu);

/// Number of the experts that have rows: those without are not multiplied.
std::int64_t experts_with_rows(const Operation& op);

/// Shape of the mean expert's GEMM, by which measured ratios are looked up.
hardware::GemmSize mean_product(const Operation& op);

}  // namespace orrery::models
