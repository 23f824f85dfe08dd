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
  const auto some = [&](std::int64_t b, std::int64_t h) {
    const std::int64_t next_b = of_sequences ? b + 1 : b;
    const std::int64_t next_h = of_sequences ? h : h + heads.group;
    const auto place = [&](Matrix& matrix, HeadMatrix of, models::DType type) {
      const std::int64_t at = heads.offset(of, b, h);
      matrix = {matrix.data + at * width_of(type), heads.row(of),
                heads.offset(of, next_b, next_h) - at};
    };
    Call call = whole;
    call.shape.batch = of_sequences ? shape.batch : shape.kv_heads;
    call.shape.accumulate = heads.accumulates(h);
    place(call.a, heads.a, call.from);
    place(call.b, heads.b, call.from);
    place(call.c, heads.c, call.to);
    multiply(call, stream);
  };
  for (std::int64_t b = 0; b < (of_sequences ? 1 : shape.batch); ++b) {
    for (std::int64_t h = 0; h < (of_sequences ? shape.heads : heads.group); ++h) some(b, h);
  }
}

}  // namespace orrery::executor::cuda
