#include "executor/device/head_products.hpp"

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::AttentionGemm;

struct ProductMatrices {
  AttentionGemm product;
  HeadMatrix a, b, c;
};
constexpr ProductMatrices all_products[] = {
    {AttentionGemm::scores, HeadMatrix::query, HeadMatrix::key, HeadMatrix::square},
    {AttentionGemm::context, HeadMatrix::square, HeadMatrix::value, HeadMatrix::context},
    {AttentionGemm::weights_gradient, HeadMatrix::context, HeadMatrix::value, HeadMatrix::square},
    {AttentionGemm::value_gradient, HeadMatrix::square, HeadMatrix::context, HeadMatrix::value},
    {AttentionGemm::query_gradient, HeadMatrix::square, HeadMatrix::key, HeadMatrix::query},
    {AttentionGemm::key_gradient, HeadMatrix::square, HeadMatrix::query, HeadMatrix::key}};

}  // namespace

HeadProducts::HeadProducts(const models::Operation& operation)
    : shape{operation.attention()}, group{shape.heads / shape.kv_heads} {
  for (const ProductMatrices& each : all_products) {
    if (each.product != operation.attention_gemm()) continue;
    a = each.a;
    b = each.b;
    c = each.c;
    return;
  }
  throw ContractError{"a product per head does not say which"};
}

std::int64_t HeadProducts::row(HeadMatrix of) const {
  const std::int64_t value = shape.value_width();
  if (of == HeadMatrix::square) return keys();
  if (of == HeadMatrix::context) return shape.heads * value;
  if (shape.crosses) {
    return of == HeadMatrix::query ? shape.query_columns()
                                   : shape.kv_heads * (shape.head_dim + value);
  }
  return shape.query_columns() + shape.kv_heads * (shape.head_dim + value);
}

std::int64_t HeadProducts::offset(HeadMatrix of, std::int64_t sequence, std::int64_t head) const {
  const bool of_keys = of == HeadMatrix::key || of == HeadMatrix::value;
  const std::int64_t tokens = of_keys ? keys() : shape.seq;
  const std::int64_t first = sequence * tokens * row(of), value = shape.value_width();
  const std::int64_t before = shape.crosses ? 0 : shape.query_columns(), shared = head / group;
  switch (of) {
    case HeadMatrix::query:
      return first + head * shape.query_step();
    case HeadMatrix::key:
      return first + before + shared * shape.head_dim;
    case HeadMatrix::value:
      return first + before + shape.kv_heads * shape.head_dim + shared * value;
    case HeadMatrix::square:
      return (sequence * shape.heads + head) * shape.seq * keys();
    case HeadMatrix::context:
      return first + head * value;
  }
  throw ContractError{"a matrix of no known kind"};
}

}  // namespace orrery::executor
