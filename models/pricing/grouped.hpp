#pragma once
// Products of experts: one kernel for matrices of unequal heights.

#include "hardware/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::models {

/// Time of a grouped_gemm by the plain product's curve.
///   on a GPU   t = curve(2 n k sum_e ceil(rows_e / tile) tile, bytes): one grid holds the tiles
///              of all experts, so none waits for another's last wave, but a tile that its rows
///              do not fill takes as long as a full one
///   on a CPU   t = sum_e curve(2 n k rows_e, bytes_e): one product after another
/// tile     128 rows of the result; of a weight's gradient, whose rows are summed over, 64
/// Source   NVIDIA CUTLASS 3, default tile of 16-bit products on Hopper: 128 x 128 x 64
/// Errors   a format without a peak: InputError
Time grouped_time(const Operation& op, const hardware::Gpu& gpu);

/// The mean expert's product, by which measured ratios are looked up.
hardware::GemmSize mean_product(const Operation& op);

}  // namespace orrery::models
