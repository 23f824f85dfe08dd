#pragma once
// The variants of a GEMM that cuBLASLt is asked for, one after another, until it has an algorithm,
// and the message where it has none. Any answer but an algorithm is a refusal: libraries differ in
// the status that they give.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::executor::cuda {

struct ProductAttempt {
  bool bias = false;                  // added by the GEMM itself, else by a kernel of ours
  std::int64_t most_alignment = 256;  // of operands, in bytes, that the library may count on

  friend bool operator==(const ProductAttempt&, const ProductAttempt&) = default;
};

/// All attempts in order: first with the bias, if there is one, then without; each of these first
/// with the alignment that the operands have, then with 16 bytes, which every kernel with vector
/// loads accepts.
std::vector<ProductAttempt> product_attempts(bool bias);

/// "'qkv' [4096, 1024] x [1024, 3072] of bf16 to fp32, 8 times, a transposed"
std::string product_words(std::string_view name, const models::GemmShape& shape, models::DType from,
                          models::DType to);

/// "cuBLASLt has no algorithm for GEMM WORDS (with bias, aligned to 256 bytes: STATUS; ...)";
/// `answers` are cuBLASLt's to the attempts, in their order.
std::string no_product_text(std::string_view words, bool bias,
                            std::span<const std::string> answers);

}  // namespace orrery::executor::cuda
