#pragma once
// The matrix products, one per expert, that an OpKind::grouped_gemm consists of, and where their
// matrices are in its operands.

#include <vector>

#include "models/program/block.hpp"

namespace orrery::executor {

/// One expert's product: its shape, and the offsets of its matrices in elements.
struct ExpertProduct {
  models::GemmShape shape;
  std::int64_t a = 0, b = 0, c = 0;
};

/// One product per expert, in order. Experts without a row are included: unless it accumulates,
/// their weight's gradient is zero.
/// Errors  rows that do not add up to the operation's: ContractError
std::vector<ExpertProduct> expert_products(const models::Operation& operation);

}  // namespace orrery::executor
