#pragma once
// Kernel times that were measured on this very device, where its calibration has them: GEMMs by
// shape, other kernels by kind and bytes. Kernels take longer when other ranks of the machine
// compute at the same time.

#include <optional>
#include <string>

#include "hardware/gpu/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::models {

/// Time of an operation alone on the device; nullopt where its kind was not measured.
///   gemm          curve(2mnk, bytes) * ratio(m, n, k)
///   batched_gemm  batch * curve(2mnk, bytes / batch) * ratio(m, n, k): one GEMM after another
///   grouped_gemm  its rule (grouped.hpp) * ratio(mean rows of an expert, n, k)
///   others        the first table of `kernel_keys` at the operation's bytes
std::optional<Time> calibrated_time(const Operation& op, const hardware::Gpu& gpu);

/// Key of a kernel: its kind, and the numbers of operands that it reads and writes, as in "add 3>1"
/// or "activation gelu 1>1". With another function, or one more bias or gradient, it is another
/// kernel.
std::string kernel_key(const Operation& op);

/// Keys of the tables that may time an operation, the closest first: those of its kind with as many
/// operands, then those of its kind. A CPU (`processor`) converts formats of fewer than 32 bits, so
/// tables of that format come first, "add 3>1 bf16" and "add bf16", and a measurement in such a
/// format belongs to those two only.
std::vector<std::string> kernel_keys(const Operation& op, bool processor);

/// Factor by which an operation slows down next to `at_once` - 1 other ranks of one machine.
double slowdown_of(const Operation& op, const hardware::Gpu& gpu, int at_once);

}  // namespace orrery::models
