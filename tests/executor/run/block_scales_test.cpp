// Training in mxfp8 and nvfp4: numbers, and whole steps.

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/block_scales.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/fp8_operand.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::DType;
using models::Operation;
using models::OpKind;
using models::Precision;

// Halfway numbers go to the even code: 0.25 to 0, 0.75 to 1 (2), 1.25 to 1, 1.75 to 2 (4), 2.5 to
// 2, 3.5 to 4 (6), 5 to 4; beyond 6 everything is 6.
TEST_CASE("Numbers in 4 bits are 0, 0.5, 1, 1.5, 2, 3, 4 and 6") {
  const std::pair<float, float> rounded[] = {
      {0.25F, 0}, {0.26F, 0.5F}, {0.75F, 1}, {1.25F, 1}, {1.26F, 1.5F}, {1.75F, 2},    {2.5F, 2},
      {2.6F, 3},  {3.5F, 4},     {5, 4},     {5.1F, 6},  {100, 6},      {-1.6F, -1.5F}};
  for (const auto& [from, to] : rounded) CHECK(decode_e2m1(encode_e2m1(from)) == to);
}

// 448 fits under 2^0, 449 wants 2^1, 0.875 = 448 / 512 wants 2^-9; the code is 127 more.
TEST_CASE("A block of mxfp8 has the least power of two under which its largest number fits") {
  const auto code = [](float largest) { return block_scale(BlockFormat::mxfp8, largest, 1); };
  CHECK(code(448) == 127);
  CHECK(code(449) == 128);
  CHECK(code(0.875F) == 118);
  CHECK(code(0.8751F) == 119);
  CHECK(code(0) == 127);
  CHECK(code(1e-45F) == 0);
  CHECK(code(INFINITY) == 255);
  CHECK(std::isnan(decode_e8m0(255)));
  CHECK(decode_e8m0(0) == 0x1p-127F);
}

/// An operand of one kernel call, with room for what lies after it.
struct ScaledValues {
  std::vector<float> memory;
  View view;

  ScaledValues(DType dtype, std::int64_t rows, std::int64_t columns,
               const std::vector<float>& values = {})
      : memory(static_cast<std::size_t>(2 * (rows + 32) * (columns + 1) + 64)),
        view{reinterpret_cast<std::byte*>(memory.data()), dtype, {1, rows, columns}} {
    std::copy(values.begin(), values.end(), memory.begin());
  }
};

Operation of_kind(OpKind kind, DType dtype) {
  Operation op;
  op.kind = kind;
  op.dtype = dtype;
  return op;
}

void perform_scaled(const Operation& op, const std::vector<View>& reads,
                    const std::vector<View>& writes) {
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  CpuDevice{}.run(kernel);
}

// Two blocks of a row of 64. Ones and 448 fit under 2^0; 3.3 lies between 3.25 and 3.5 of steps of
// 1/4 there. In the second block the largest is 7: under 2^-6 it is 448, and 3.3 is 211.2, between
// 208 and 224 of steps of 16: 208 / 64 = 3.25.
TEST_CASE("mxfp8 multiplies what the blocks mean") {
  std::vector<float> x(64, 1.0F), ones(64, 1.0F);
  x[0] = 448;
  x[1] = 3.3F;
  x[32] = 7;
  x[33] = 3.3F;
  const ScaledValues from{DType::fp32, 1, 64, x};
  ScaledValues codes{DType::fp8, 1, 64}, scales{DType::uint8, 1, 2};
  perform_scaled(of_kind(OpKind::quantise, DType::fp8), {from.view}, {codes.view, scales.view});
  CHECK(static_cast<int>(scales.view.data[0]) == 127);
  CHECK(static_cast<int>(scales.view.data[1]) == 121);
  Operation product = of_kind(OpKind::gemm, DType::fp8);
  product.mutable_gemm() = {.m = 1, .n = 1, .k = 64};
  const ScaledValues weight{DType::fp32, 64, 1, ones}, bias{DType::fp32, 1, 1, {0.5F}};
  ScaledValues out{DType::fp32, 1, 1};
  perform_scaled(product, {codes.view, weight.view, scales.view, bias.view}, {out.view});
  CHECK(out.memory[0] == 448 + 3.25F + 30 + 7 + 3.25F + 30 + 0.5F);
}

// The largest of all is 2688 = 6 448, so the tensor's scale is 1. Down the first column the block's
// scale is 448, and 500 / 448 = 1.116 becomes 1; down the second it is 4 / 6 in e4m3, of steps of
// 1/16 there: 0.6875, and 3 / 0.6875 = 4.36 becomes 4.
TEST_CASE("nvfp4 scales blocks of 16 down columns, in units of the tensor's scale") {
  std::vector<float> x(32, 0.0F);
  x[0] = 2688;
  x[2] = 500;
  x[1] = 4;
  x[3] = 3;
  const ScaledValues from{DType::fp32, 16, 2, x};
  ScaledValues rows{DType::fp4, 16, 2}, row_scales{DType::uint8, 16, 1};
  ScaledValues columns{DType::fp4, 16, 2}, column_scales{DType::uint8, 16, 1};
  perform_scaled(of_kind(OpKind::quantise, DType::fp4), {from.view},
                 {rows.view, row_scales.view, columns.view, column_scales.view});
  CHECK(*tensor_scale_of(column_scales.view) == 1);
  Operation product = of_kind(OpKind::gemm, DType::fp4);
  product.mutable_gemm() = {.m = 2, .n = 1, .k = 16, .transpose_a = true};
  ScaledValues ones{DType::fp4, 16, 1}, one_scales{DType::uint8, 16, 1};
  const ScaledValues all{DType::fp32, 16, 1, std::vector<float>(16, 6.0F)};
  ScaledValues unused{DType::fp4, 16, 1}, unused_scales{DType::uint8, 16, 1};
  perform_scaled(of_kind(OpKind::quantise, DType::fp4), {all.view},
                 {unused.view, unused_scales.view, ones.view, one_scales.view});
  ScaledValues out{DType::fp32, 2, 1};
  perform_scaled(product, {columns.view, ones.view, column_scales.view, one_scales.view},
                 {out.view});
  const float six = 6.0F / 2688 * 448 * 6;  // as fp32 rounds it
  CHECK(out.memory[0] == Approx(six * (2688 + 448)));
  CHECK(out.memory[1] == Approx(six * (0.6875 * 6 + 0.6875 * 4)));
}

constexpr Precision precisions[] = {Precision::fp8_current, Precision::mxfp8, Precision::nvfp4};

Job job_in(Precision precision, std::int64_t steps, const models::Model& model = small_llama()) {
  Job job{.model = model, .plan = small_plan(), .steps = steps};
  job.plan.formats.precision = precision;
  return job;
}

// A number in 4 bits is off by up to a fifth, in the mean some 10 %: a product of both by 14 %, and
// a gradient has some ten of them after it.
TEST_CASE("In few bits gradients and losses are those of bf16 but for the format's rounding") {
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome bf16 = run(job_in(Precision::bf16, 1, model));
    for (const Precision precision : precisions) {
      INFO(models::name(precision));
      const Outcome narrow = run(job_in(precision, 1, model));
      const double off = distance(narrow.gradients, bf16.gradients);
      CHECK(off < (precision == Precision::nvfp4 ? 0.7 : 0.2));
      CHECK(off > 0.01);  // it is another arithmetic
      CHECK(narrow.steps[0].loss == Approx(bf16.steps[0].loss).epsilon(5e-3));
    }
  }
}

// Blocks are of rows, and of the tokens of a micro-batch: ranks that cut samples have the same.
TEST_CASE("In few bits a cut of the batch and of layers gives what one rank does") {
  for (const Precision precision : precisions) {
    INFO(models::name(precision));
    const Job one = job_in(precision, 2);
    const Outcome whole = run(one);
    Job cut = one;
    cut.plan.data = cut.plan.pipeline = 2;
    cut.plan.sharding.zero = models::Zero::one;
    const Outcome many = run(cut);
    CHECK(distance(many.gradients, whole.gradients) < 1e-5);
    CHECK(many.steps[1].loss == Approx(whole.steps[1].loss).epsilon(1e-4));
    Job again = one;
    again.plan.recompute.kind = models::Recompute::full;
    CHECK(same_bits(run(again).gradients, whole.gradients));
  }
}

// Rows of one expert that another rank sent follow this rank's, so that blocks of columns have
// other numbers where ranks share experts.
TEST_CASE("In few bits experts learn as in bf16, and ranks that cut the batch as one") {
  const models::Model model = with_experts(small_llama());
  const Outcome bf16 = run(job_in(Precision::bf16, 1, model));
  for (const Precision precision : {Precision::fp8, Precision::mxfp8, Precision::nvfp4}) {
    INFO(models::name(precision));
    const Job one = job_in(precision, 1, model);
    const Outcome whole = run(one);
    CHECK(whole.steps[0].loss == Approx(bf16.steps[0].loss).epsilon(1e-2));
    Job cut = one;
    cut.plan.data = 2;
    CHECK(distance(run(cut).gradients, whole.gradients) < 1e-5);
    cut.plan.experts.ranks = 2;
    CHECK(run(cut).steps[0].loss == Approx(whole.steps[0].loss).epsilon(1e-2));
  }
}

TEST_CASE("The scale of another block shows in the gradients") {
  const Job job = job_in(Precision::mxfp8, 1);
  Job wrong = job;
  wrong.disturb = [](Kernel& kernel) {
    if (kernel.operation->kind != OpKind::gemm || kernel.reads.size() < 3) return;
    const View& scales = kernel.reads[2];
    if (scales.dtype == DType::uint8) scales.data[0] = std::byte{130};
  };
  CHECK(distance(run(wrong).gradients, run(job).gradients) > 0.1);
}

}  // namespace
}  // namespace orrery::executor
