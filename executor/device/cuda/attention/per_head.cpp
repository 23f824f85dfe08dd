// Matrix products of unfused attention, on heads inside its operands, in batches.

#include "executor/device/cuda/products/gemms.hpp"
#include "executor/device/head_products.hpp"

namespace orrery::executor::cuda {

/// Products whose operands have even steps between them form one batch: the same head of every
/// sequence, or the same head of every group in one sequence, whichever makes fewer calls.
void Gemms::per_head(const Kernel& kernel, Stream stream) {
  const HeadProducts heads{*kernel.operation};
  const models::AttentionShape& shape = heads.shape;
  const bool of_sequences = shape.heads <= shape.batch * heads.group;
  const Call whole = call_of(kernel);
  const auto width = [](models::DType type) { return bits(type) / 8; };
  const auto some = [&](std::int64_t b, std::int64_t h) {
    const std::int64_t next_b = of_sequences ? b + 1 : b;
    const std::int64_t next_h = of_sequences ? h : h + heads.group;
    const auto step = [&](HeadMatrix of) {
      return heads.offset(of, next_b, next_h) - heads.offset(of, b, h);
    };
    Call call = whole;
    call.shape.batch = of_sequences ? shape.batch : shape.kv_heads;
    call.shape.accumulate = heads.accumulates(h);
    call.a += heads.offset(heads.a, b, h) * width(call.from);
    call.b += heads.offset(heads.b, b, h) * width(call.from);
    call.c += heads.offset(heads.c, b, h) * width(call.to);
    call.row_a = heads.row(heads.a);
    call.row_b = heads.row(heads.b);
    call.row_c = heads.row(heads.c);
    call.step_a = step(heads.a);
    call.step_b = step(heads.b);
    call.step_c = step(heads.c);
    multiply(call, stream);
  };
  for (std::int64_t b = 0; b < (of_sequences ? 1 : shape.batch); ++b) {
    for (std::int64_t h = 0; h < (of_sequences ? shape.heads : heads.group); ++h) some(b, h);
  }
}

}  // namespace orrery::executor::cuda
