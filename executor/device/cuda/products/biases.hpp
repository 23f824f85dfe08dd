#pragma once
// Biases next to products, and their gradients, by kernels of our own: of one product where
// cuBLASLt leaves it out, and of experts, each with a bias for its rows.

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// The third that a gemm or a grouped_gemm reads, added to rows of what it wrote; nothing where it
/// reads no third.
void add_biases(const Kernel& product, Stream stream);

/// writes[1] of a weight's gradient, where it has one, += the columns of reads[1], of each expert's
/// rows its own. factor  on the GPU, of the sums; null: 1
void add_bias_gradients(const Kernel& product, Stream stream, std::byte* scratch,
                        const float* factor = nullptr);
/// rows  what reads[1] is stored in
std::int64_t bias_gradients_scratch(const Kernel& product, models::DType rows);

}  // namespace orrery::executor::cuda
