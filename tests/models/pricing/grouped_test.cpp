// Products of experts: what one kernel for matrices of unequal heights is priced at.
#include "models/pricing/grouped.hpp"

#include <catch2/catch.hpp>

#include "models/operations/grouped.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// 100 TFLOP/s in bf16, memory that takes no time, nothing before a product begins.
hardware::Gpu plain_gpu() {
  hardware::Gpu gpu;
  gpu.name = "plain";
  gpu.generation = hardware::generation_named("hopper");
  gpu.dense_peak[static_cast<std::size_t>(DType::bf16)] = 100_TFLOPS;
  gpu.memory_bandwidth = Bandwidth{1e30};
  gpu.gemm[DType::bf16] = {
      .compute_share = 1, .memory_share = 1, .overhead = {}, .corner = 4, .origin = {}};
  return gpu;
}

Operation experts(std::vector<std::int64_t> rows, ExpertsProduct which) {
  return experts_block({.rows = std::move(rows), .k = 1000, .n = 500}, which).operations.front();
}

}  // namespace

// 2 * 1000 * 500 = 1 MFLOP a row: 10 ns at 100 TFLOP/s.
TEST_CASE("A tile of an expert that its rows do not fill takes as long as a full one") {
  const hardware::Gpu gpu = plain_gpu();
  const auto time = [&](std::vector<std::int64_t> rows) {
    return grouped_time(experts(std::move(rows), ExpertsProduct::forward), gpu);
  };
  CHECK(time({128, 256}) == 10_ns * 384);
  CHECK(time({128, 129}) == 10_ns * 384);  // 128 + 256
  CHECK(time({1, 1, 1}) == 10_ns * 384);
  CHECK(time({384, 0, 0}) == 10_ns * 384);  // who has no rows costs nothing
  const Operation gradient = experts({64, 65}, ExpertsProduct::weight_gradient);
  CHECK(grouped_time(gradient, gpu) == 10_ns * 192);  // sums are over 64 rows at a time
  CHECK(grouped_time(experts({64, 65}, ExpertsProduct::input_gradient), gpu) == 10_ns * 256);
}

// Each product begins anew, 1 us, for 10 ns a row; who has no rows is not begun.
TEST_CASE("A processor takes one expert after another") {
  hardware::Gpu gpu = plain_gpu();
  gpu.generation = hardware::generation_named("cpu");
  gpu.gemm[DType::bf16].overhead = 1_us;
  CHECK(grouped_time(experts({100, 0, 50}, ExpertsProduct::forward), gpu) == 2_us + 10_ns * 150);
}

// Of a start of 10 us a queue exposes 4, once for each product that is begun.
TEST_CASE("Experts one by one begin a product for each that has rows") {
  hardware::Gpu gpu = plain_gpu();
  gpu.gemm[DType::bf16].overhead = 10_us;
  const auto time = [&](std::vector<std::int64_t> rows) {
    Operation op = experts(std::move(rows), ExpertsProduct::forward);
    op.module.kernels = static_cast<std::int16_t>(op.group_rows().size());
    return kernel_time(op, gpu, plain_software());
  };
  CHECK(time({100, 50}) == 4_us * 2 + 10_ns * 150);
  CHECK(time({100, 0, 50, 0, 0, 0}) == time({100, 50}));
  CHECK(time({0, 0}) == Time{});
}

TEST_CASE("Tiles of an MLP are products one after another") {
  hardware::Gpu gpu = plain_gpu();
  gpu.gemm[DType::bf16].overhead = 10_us;
  Operation op;
  op.kind = OpKind::gemm;
  op.dtype = DType::bf16;
  op.mutable_gemm() = {.m = 4096, .n = 500, .k = 1000};
  op.flops = Flops{4'096'000'000};
  CHECK(kernel_time(op, gpu, plain_software()) == 4_us + 10_ns * 4096);
  op.module.kernels = 256;
  CHECK(kernel_time(op, gpu, plain_software()) == 4_us * 256 + 10_ns * 4096);
  gpu.calibration.gemm[DType::bf16] =
      hardware::ShapeResidual{{{.shape = {16, 500, 1000}, .log_ratio = std::log(2.0)}}};
  CHECK(kernel_time(op, gpu, plain_software()) == (10_us * 256 + 10_ns * 4096) * 2);
}

TEST_CASE("What was measured of experts scales their rule, by the mean expert's product") {
  hardware::Gpu gpu = plain_gpu();
  const Operation op = experts({300, 84}, ExpertsProduct::forward);
  CHECK(mean_product(op).m == 192);
  CHECK(mean_product(experts({300, 84}, ExpertsProduct::weight_gradient)).k == 192);
  const Time ruled = kernel_time(op, gpu, plain_software());
  CHECK(ruled == 10_ns * (384 + 128));
  gpu.calibration.grouped_gemm[DType::bf16] =
      hardware::ShapeResidual{{{.shape = {192, 500, 1000}, .log_ratio = std::log(2.0)}}};
  CHECK(kernel_time(op, gpu, plain_software()) == ruled * 2);
}

TEST_CASE("A block of experts has the FLOPs of its rows, and the bytes of its operands") {
  const ExpertsShape shape{.rows = {3, 0, 5}, .k = 4, .n = 2};
  const Operation forward = experts_block(shape, ExpertsProduct::forward).operations.front();
  CHECK(forward.flops == Flops{2 * 8 * 4 * 2});
  CHECK(forward.bytes == Bytes{2 * (8 * 4 + 3 * 4 * 2 + 8 * 2)});
  CHECK(forward.gemm().batch == 3);
  // Sums of 4 bytes are read and written.
  const Operation sums = experts_block(shape, ExpertsProduct::weight_gradient).operations.front();
  CHECK(sums.flops == forward.flops);
  CHECK(sums.bytes == Bytes{2 * (8 * 4 + 8 * 2) + 2 * 4 * (3 * 4 * 2)});
  CHECK_THROWS_WITH(experts_block({.rows = {}, .k = 1, .n = 1}, ExpertsProduct::forward),
                    Catch::Contains("a grouped GEMM has an expert"));
}

}  // namespace orrery::models
