#pragma once
// Our own kernels for the GPU: every operation but matrix products, fused attention, collectives
// and copies. They compute in fp32, or in fp64 where numbers are stored so. The order of all sums
// depends on shapes alone, so the same call gives the same bits on every run and every GPU.
// Integers modulo 2^64 (Arithmetic::ring) are for the CPU only; the device refuses them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "executor/device/cuda/kernels/experts/token_places.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Enqueues `kernel` after all work on the stream. `scratch` is aligned to 16 bytes, has the bytes
/// that `scratch_bytes` says, and may serve the stream's next kernel as well.
/// Errors  a kind that is not here: ContractError; RunFailure{local_failure} from CUDA
void launch_kernel(const Kernel& kernel, Stream stream, std::byte* scratch,
                   const TokenPlaces& tokens = {});

std::int64_t scratch_bytes(const models::Operation& operation, std::span<const View> reads);

/// Why an operation of any kind cannot run because of the part of a layer that it belongs to;
/// empty: it can.
std::string part_refusal(const models::Operation& operation);
/// Why an operation of these kinds cannot run; empty: it can.
std::string kernel_refusal(const models::Operation& operation);

/// `to` [1, 1, n] += the column sums of `from` [1, rows, n]: the gradient of a bias, after a
/// weight's.
/// factor  on the GPU, of the sums; null: 1
void column_sums(const View& from, const View& to, Stream stream, std::byte* scratch,
                 const float* factor = nullptr);
std::int64_t column_sums_scratch(const View& from);

/// The last columns of `to` [1, rows, n] become `from` [1, rows, fewer], of one format.
void put_last_columns(const View& from, const View& to, Stream stream);

/// `to` [1, rows, n] += `row` [1, 1, n], of one format: a bias that a GEMM left out.
void add_row(const View& row, const View& to, Stream stream);

}  // namespace orrery::executor::cuda
