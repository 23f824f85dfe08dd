#pragma once
// Grouped GEMM: each expert has a weight of its own and as many rows as were sent to it. One
// operation (OpKind::grouped_gemm) computes all of them. These single-operation blocks are for
// calibration; layers with experts build theirs in experts.cpp.

#include <cstdint>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::models {

/// Sizes of one grouped GEMM on one rank.
struct ExpertsShape {
  std::vector<std::int64_t> rows;  // of each expert; 0: no token was sent to it
  std::int64_t k = 0, n = 0;       // a weight is [k, n]
  DType dtype = DType::bf16;
  DType gradient = DType::fp32;  // of the weight gradients, which are accumulated

  std::int64_t all_rows() const;
};

enum class ExpertsProduct : std::uint8_t { forward, input_gradient, weight_gradient };

/// A block with one grouped GEMM and its operands.
///   forward          y [rows, n] = x [rows, k] x w [experts, k, n]
///   input_gradient   dx [rows, k] = dy [rows, n] x w'
///   weight_gradient  dw [experts, k, n] += x' x dy
/// Each expert's rows of x and y follow those of the expert before. FLOPs are 2 rows k n.
/// Errors  no expert: ContractError
Block experts_block(const ExpertsShape& shape, ExpertsProduct which);

}  // namespace orrery::models
