// Matrix products of unfused attention, on heads inside its operands, in batches.

#include "executor/device/cuda/products/gemms.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::AttentionGemm;
using models::AttentionShape;
using models::DType;

/// What a matrix of such a product is: a head's queries, keys or values in qkv, its [seq, seq]
/// scores, weights or their gradients (square), or its output (context).
enum class Part { query, key, value, square, context };
struct Parts {
  Part a, b, c;
};

Parts parts_of(AttentionGemm product) {
  switch (product) {
    case AttentionGemm::scores:
      return {Part::query, Part::key, Part::square};
    case AttentionGemm::context:
      return {Part::square, Part::value, Part::context};
    case AttentionGemm::weights_gradient:
      return {Part::context, Part::value, Part::square};
    case AttentionGemm::value_gradient:
      return {Part::square, Part::context, Part::value};
    case AttentionGemm::query_gradient:
      return {Part::square, Part::key, Part::query};
    case AttentionGemm::key_gradient:
      return {Part::square, Part::query, Part::key};
    case AttentionGemm::none:
      break;
  }
  throw ContractError{"a product per head does not say which"};
}

/// Offset of one head of one sequence in its operand, in elements.
struct Heads {
  AttentionShape shape;
  std::int64_t query = shape.heads * shape.head_dim;
  std::int64_t value = shape.value_width();
  std::int64_t columns = query + shape.kv_heads * (shape.head_dim + value);
  std::int64_t context = shape.heads * value;
  std::int64_t group = shape.heads / shape.kv_heads;

  std::int64_t row(Part part) const {
    return part == Part::square ? shape.seq : part == Part::context ? context : columns;
  }
  std::int64_t offset(Part part, std::int64_t sequence, std::int64_t head) const {
    const std::int64_t token = sequence * shape.seq;
    const std::int64_t key = query + head / group * shape.head_dim;
    switch (part) {
      case Part::query:
        return token * columns + head * shape.head_dim;
      case Part::key:
        return token * columns + key;
      case Part::value:
        return token * columns + query + shape.kv_heads * shape.head_dim + head / group * value;
      case Part::square:
        return (sequence * shape.heads + head) * shape.seq * shape.seq;
      case Part::context:
        return token * context + head * value;
    }
    return 0;
  }
};

}  // namespace

/// Products whose operands have even steps between them form one batch: the same head of every
/// sequence, or the same head of every group in one sequence, whichever makes fewer calls.
void Gemms::per_head(const Kernel& kernel, Stream stream) {
  const models::Operation& op = *kernel.operation;
  const Heads heads{op.attention};
  const AttentionShape& shape = heads.shape;
  const Parts parts = parts_of(op.attention_gemm);
  const bool of_sequences = shape.heads <= shape.batch * heads.group;
  const bool sums = op.attention_gemm == AttentionGemm::value_gradient ||
                    op.attention_gemm == AttentionGemm::key_gradient;
  const Call whole = call_of(kernel);
  const auto width = [](DType type) { return bits(type) / 8; };
  const auto some = [&](std::int64_t b, std::int64_t h) {
    const std::int64_t next_b = of_sequences ? b + 1 : b;
    const std::int64_t next_h = of_sequences ? h : h + heads.group;
    const auto step = [&](Part part) {
      return heads.offset(part, next_b, next_h) - heads.offset(part, b, h);
    };
    Call call = whole;
    call.shape.batch = of_sequences ? shape.batch : shape.kv_heads;
    call.shape.accumulate = sums && h % heads.group != 0;  // later heads of a group
    call.a += heads.offset(parts.a, b, h) * width(call.from);
    call.b += heads.offset(parts.b, b, h) * width(call.from);
    call.c += heads.offset(parts.c, b, h) * width(call.to);
    call.row_a = heads.row(parts.a);
    call.row_b = heads.row(parts.b);
    call.row_c = heads.row(parts.c);
    call.step_a = step(parts.a);
    call.step_b = step(parts.b);
    call.step_c = step(parts.c);
    multiply(call, stream);
  };
  if (of_sequences) {
    for (std::int64_t h = 0; h < shape.heads; ++h) some(0, h);
    return;
  }
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < heads.group; ++h) some(b, h);
  }
}

}  // namespace orrery::executor::cuda
