#pragma once
// fp8 on the CPU: storage only, with one scale per tensor; GEMMs are computed in fp32.

#include "executor/device/fp8_operand.hpp"

namespace orrery::executor::cpu {

/// Stores `numbers` in `to`, with the inverse of their scale after them.
void quantise(const float* numbers, const View& to, Fp8 format);

/// Decodes all elements of `from`, stored in `format`.
void decode(const View& from, Fp8 format, float* to);

/// Rounds a GEMM's operand that is stored in a wider format, as if it had been quantised and
/// decoded.
void round_to_fp8(float* numbers, std::int64_t count, Fp8 format);

}  // namespace orrery::executor::cpu
