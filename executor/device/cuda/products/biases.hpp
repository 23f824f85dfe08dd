#pragma once
// Biases of GEMMs and their gradients, by our own kernels: of one GEMM where cuBLASLt leaves out
// the bias, and of a grouped GEMM, where each expert has a bias for its rows; and the columns that
// follow a latent's gradient in its rows.

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Adds the bias, which is reads[2] of a gemm or grouped_gemm, to the rows of writes[0]; does
/// nothing if there is none.
void add_biases(const Kernel& product, Stream stream);

/// Copies reads[2] of a gemm to the columns that follow its result in the rows of writes[0]; does
/// nothing if there are none.
void fill_columns_after(const Kernel& product, Stream stream);

/// Gradient of a bias, after a weight's: writes[1], where there is one, += the column sums of
/// reads[1], over each expert's own rows.
/// factor  on the GPU, of the sums; null: 1
void add_bias_gradients(const Kernel& product, Stream stream, std::byte* scratch,
                        const float* factor = nullptr);
/// Bytes of scratch for `add_bias_gradients`.
/// rows  the format that reads[1] is stored in
std::int64_t bias_gradients_scratch(const Kernel& product, models::DType rows);

}  // namespace orrery::executor::cuda
