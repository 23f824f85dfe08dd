#include "executor/device/grouped.hpp"

#include "sim/errors.hpp"

namespace orrery::executor {

std::vector<ExpertProduct> expert_products(const models::Operation& operation) {
  const models::GemmShape& whole = operation.gemm();
  const bool sums_rows = whole.transpose_a;  // a weight's gradient
  std::vector<ExpertProduct> products;
  products.reserve(operation.group_rows().size());
  std::int64_t row = 0, expert = 0;
  for (const std::int64_t rows : operation.group_rows()) {
    ExpertProduct one{.shape = whole};
    one.shape.batch = 1;
    (sums_rows ? one.shape.k : one.shape.m) = rows;
    one.a = row * (sums_rows ? whole.m : whole.k);
    one.b = sums_rows ? row * whole.n : expert * whole.k * whole.n;
    one.c = sums_rows ? expert * whole.m * whole.n : row * whole.n;
    products.push_back(one);
    row += rows;
    ++expert;
  }
  ensure(row == (sums_rows ? whole.k : whole.m), "experts have the operation's rows");
  return products;
}

}  // namespace orrery::executor
