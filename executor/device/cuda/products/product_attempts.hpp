#pragma once
// In which ways a library is asked for a product until it has an algorithm, and what is said where
// it has none. Any answer but an algorithm is a refusal: libraries differ in which they give.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::executor::cuda {

struct ProductAttempt {
  bool bias = false;                  // added by the product itself, else by a kernel of ours
  std::int64_t most_alignment = 256;  // of operands, in bytes, that the library may count on

  friend bool operator==(const ProductAttempt&, const ProductAttempt&) = default;
};

/// In their order: with the bias, where there is one, before without; and each with the alignment
/// that operands have before 16 bytes, which every kernel with loads of a vector takes.
std::vector<ProductAttempt> product_attempts(bool bias);

/// "'qkv' [4096, 1024] x [1024, 3072] of bf16 to fp32, 8 times, a transposed"
std::string product_words(std::string_view name, const models::GemmShape& shape, models::DType from,
                          models::DType to);

/// "cuBLASLt has no product WORDS (with the bias: CUBLAS_STATUS_NOT_SUPPORTED; ...)"; `answers` to
/// the attempts, in their order.
std::string no_product_text(std::string_view words, bool bias,
                            std::span<const std::string> answers);

}  // namespace orrery::executor::cuda
