#include "executor/device/cuda/products/biases.hpp"

#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/grouped.hpp"
#include "executor/device/row_steps.hpp"

namespace orrery::executor::cuda {

namespace {

/// `count` rows of n numbers, from the element `first` on.
View rows_of(const View& whole, std::int64_t first, std::int64_t count, std::int64_t n) {
  return {whole.data + first * bits(whole.dtype) / 8, whole.dtype, {1, count, n}};
}

/// Calls f(rows, bias) for the only product, or for each expert that has rows.
template <class F>
void each_bias(const models::Operation& op, const View& of_rows, const View& of_biases, F f) {
  const models::GemmShape& whole = op.gemm();
  if (op.kind != models::OpKind::grouped_gemm) {
    const std::int64_t count = whole.transpose_a ? whole.k : whole.m;
    return f(rows_of(of_rows, 0, count, whole.n), rows_of(of_biases, 0, 1, whole.n));
  }
  std::int64_t expert = 0;
  for (const ExpertProduct& each : expert_products(op)) {
    const std::int64_t count = whole.transpose_a ? each.shape.k : each.shape.m;
    const std::int64_t first = whole.transpose_a ? each.b : each.c;
    const View bias = rows_of(of_biases, expert++ * whole.n, 1, whole.n);
    if (count > 0) f(rows_of(of_rows, first, count, whole.n), bias);
  }
}

}  // namespace

void add_biases(const Kernel& product, Stream stream) {
  if (product.reads.size() < 3) return;
  each_bias(*product.operation, product.writes[0], product.reads[2],
            [&](const View& rows, const View& bias) { add_row(bias, rows, stream); });
}

void fill_columns_after(const Kernel& product, Stream stream) {
  if (has_columns_after(product)) put_last_columns(product.reads[2], product.writes[0], stream);
}

void add_bias_gradients(const Kernel& product, Stream stream, std::byte* scratch,
                        const float* factor) {
  if (product.writes.size() < 2) return;
  each_bias(*product.operation, product.reads[1], product.writes[1],
            [&](const View& rows, const View& gradient) {
              column_sums(rows, gradient, stream, scratch, factor);
            });
}

/// As if one expert had all rows: more rows never need less scratch.
std::int64_t bias_gradients_scratch(const Kernel& product, models::DType rows) {
  if (product.writes.size() < 2) return 0;
  const models::GemmShape& s = product.operation->gemm();
  return column_sums_scratch({nullptr, rows, {1, s.k, s.n}});
}

}  // namespace orrery::executor::cuda
