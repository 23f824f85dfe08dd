#pragma once
// The products that one OpKind::grouped_gemm is made of, and where each lies in the operands.

#include <vector>

#include "models/program/block.hpp"

namespace orrery::executor {

/// One expert's product: its shape, and where its matrices begin, in elements.
struct ExpertProduct {
  models::GemmShape shape;
  std::int64_t a = 0, b = 0, c = 0;
};

/// In the order of experts, those without a row among them: of a gradient that is not added to,
/// theirs is zero. Errors  rows that do not add up to the operation's: ContractError
std::vector<ExpertProduct> expert_products(const models::Operation& operation);

}  // namespace orrery::executor
