#pragma once
// What an attention and its gradients are, for fused kernels to be compared with.

#include <cstdint>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::executor::cuda {

using Numbers = std::vector<double>;

/// Numbers of both signs about 1, as the format holds them; others for another seed.
Numbers numbers(std::int64_t count, models::DType format, unsigned seed);

/// Columns of `qkv`.
std::int64_t columns_of(const models::AttentionShape& shape);

struct AttentionResults {
  Numbers out, lse, d_qkv;
};

/// By the formula in fp64, query by query.
AttentionResults attention_by_formula(const models::AttentionShape& shape, const Numbers& qkv,
                                      const Numbers& d_out);

/// The gradient of qkv by the CPU's products per head and softmax, in fp32.
Numbers unfused_gradients(const models::AttentionShape& shape, const Numbers& qkv,
                          const Numbers& d_out);

}  // namespace orrery::executor::cuda
