#pragma once
// fp8 on the processor: storage only, each tensor with its scale; products are computed in fp32.

#include "executor/device/fp8_operand.hpp"

namespace orrery::executor::cpu {

/// Stores `numbers` in `to`, with the inverse of their scale after them.
void quantise(const float* numbers, const View& to, Fp8 format);

/// What is stored in `from`.
void decode(const View& from, Fp8 format, float* to);

/// What a product makes of an operand that is stored in another format: each number as if it had
/// been quantised and read again.
void round_to_fp8(float* numbers, std::int64_t count, Fp8 format);

}  // namespace orrery::executor::cpu
