// Matrix products: GEMMs of linear layers, grouped GEMMs of experts, and products per head of
// unfused attention.

#include <algorithm>

#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/multiply.hpp"
#include "executor/device/cpu/zero_rows.hpp"
#include "executor/device/grouped.hpp"
#include "executor/device/head_products.hpp"
#include "executor/device/row_steps.hpp"

namespace orrery::executor::cpu {

namespace {

using models::GemmShape;

/// Adds a bias to each row.
template <class T>
void add_to_rows(const T* bias, std::int64_t rows, std::int64_t n, T* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[i * n + j] += bias[j];
  }
}
/// Adds up rows: the gradient of a bias.
template <class T>
void add_up_rows(const T* rows, std::int64_t count, std::int64_t n, T* sum) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < n; ++j) sum[j] += rows[i * n + j];
  }
}

/// One expert's product, over its rows in use alone; the other rows are zeros (zero_rows.hpp).
template <class T>
void multiply_rows(GemmShape shape, Matrices<T> x) {
  if (!shape.accumulate) std::fill_n(x.c, shape.m * x.row_c, T{});
  const Matrices<T> whole = x;
  for_rows_in_use(x.a, shape.m, x.row_a, [&](std::int64_t first, std::int64_t count) {
    x.a = whole.a + first * x.row_a;
    x.c = whole.c + first * x.row_c;
    shape.m = count;
    multiply(shape, x);
  });
}

/// One expert's weight gradient: the sum over its rows in use.
template <class T>
void multiply_columns(GemmShape shape, Matrices<T> x) {
  if (!shape.accumulate) std::fill_n(x.c, shape.m * x.row_c, T{});
  shape.accumulate = true;
  const Matrices<T> whole = x;
  for_rows_in_use(x.b, shape.k, x.row_b, [&](std::int64_t first, std::int64_t count) {
    x.a = whole.a + first * x.row_a;
    x.b = whole.b + first * x.row_b;
    shape.k = count;
    multiply(shape, x);
  });
}

/// Copies the gradient of the columns that follow a latent in its rows, after the latent's
/// gradient.
template <class T>
void copy_trailing_columns(const Call<T>& call, std::int64_t columns) {
  const std::int64_t step = call.out(0).shape[2], width = step - columns;
  for (std::int64_t row = 0; row < call.out(0).shape[1]; ++row) {
    std::copy_n(call.reads[2] + row * width, width, call.writes[0] + row * step + columns);
  }
}

/// c = op(a) op(b) [+ bias], or c += ...; a weight's gradient also adds column sums of b to the
/// bias gradient. Where c's rows are longer than the product's, reads[2] fills the columns after
/// it.
template <class T>
void gemm(const Call<T>& call) {
  const GemmShape& s = call.operation().gemm();
  const RowSteps steps{call.kernel};
  multiply<T>(s, {call.reads[0], call.reads[1], call.writes[0], steps.a, s.transpose_b ? s.k : s.n,
                  steps.c});
  if (has_columns_after(call.kernel)) return copy_trailing_columns(call, s.n);
  if (call.kernel.reads.size() > 2) add_to_rows(call.reads[2], s.m, s.n, call.writes[0]);
  if (call.kernel.writes.size() > 1) add_up_rows(call.reads[1], s.k, s.n, call.writes[1]);
}

/// The products of unfused attention, head by head inside the operands of the whole attention.
template <class T>
void batched_gemm(const Call<T>& call) {
  const HeadProducts of{call.operation()};
  GemmShape shape = call.operation().gemm();
  for (std::int64_t b = 0; b < of.shape.batch; ++b) {
    for (std::int64_t h = 0; h < of.shape.heads; ++h) {
      shape.accumulate = of.accumulates(h);
      multiply<T>(
          shape,
          {call.reads[0] + of.offset(of.a, b, h), call.reads[1] + of.offset(of.b, b, h),
           call.writes[0] + of.offset(of.c, b, h), of.row(of.a), of.row(of.b), of.row(of.c)});
    }
  }
}

/// c_e = op(a_e) op(b_e) [+ bias_e], or c_e += ..., expert by expert; a weight's gradient also adds
/// column sums of b_e to the bias gradient_e.
template <class T>
void grouped_gemm(const Call<T>& call) {
  const GemmShape& s = call.operation().gemm();
  std::int64_t expert = 0;
  for (const ExpertProduct& each : expert_products(call.operation())) {
    const Matrices<T> of{call.reads[0] + each.a,    call.reads[1] + each.b,
                         call.writes[0] + each.c,   s.transpose_a ? s.m : s.k,
                         s.transpose_b ? s.k : s.n, s.n};
    s.transpose_a ? multiply_columns(each.shape, of) : multiply_rows(each.shape, of);
    if (call.kernel.reads.size() > 2) {
      add_to_rows(call.reads[2] + expert * s.n, each.shape.m, s.n, of.c);
    }
    if (call.kernel.writes.size() > 1) {
      add_up_rows(of.b, each.shape.k, s.n, call.writes[1] + expert * s.n);
    }
    ++expert;
  }
}

}  // namespace

void add_products(KernelTable& table) {
  table.set(models::OpKind::gemm, [](const auto& call) { gemm(call); });
  table.set(models::OpKind::batched_gemm, [](const auto& call) { batched_gemm(call); });
  table.set(models::OpKind::grouped_gemm, [](const auto& call) { grouped_gemm(call); });
}

}  // namespace orrery::executor::cpu
