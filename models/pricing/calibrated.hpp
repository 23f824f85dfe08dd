#pragma once
// A kernel's time from what was measured on this very device, where its calibration has it:
// by kind and bytes, products by shape. Longer when the other ranks of the machine compute too.

#include <optional>
#include <string>

#include "hardware/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::models {

/// Time of an operation alone on the device; nothing where its kind was not measured.
///   gemm          curve(2mnk, bytes) * ratio(m, n, k)
///   batched_gemm  batch * curve(2mnk, bytes / batch) * ratio(m, n, k): one product after another
///   grouped_gemm  its rule (grouped.hpp) * ratio(mean rows of an expert, n, k)
///   others        the first table of `kernel_keys` at the operation's bytes
std::optional<Time> calibrated_time(const Operation& op, const hardware::Gpu& gpu);

/// "add 3>1", "activation gelu 1>1": a kind with the operands that it reads and writes. Another
/// function, a bias or a gradient more makes another kernel of it.
std::string kernel_key(const Operation& op);

/// Keys of the tables that may time an operation, the closest first: of as many operands, of its
/// kind. A processor converts what has fewer than 32 bits: first come tables of that format alone,
/// "add 3>1 bf16" and "add bf16", and a measurement belongs to those two only.
std::vector<std::string> kernel_keys(const Operation& op, bool processor);

/// Its slowdown next to `at_once` - 1 other ranks of one machine.
double slowdown_of(const Operation& op, const hardware::Gpu& gpu, int at_once);

}  // namespace orrery::models
