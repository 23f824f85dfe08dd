// How experts' rows are parted for a measurement, and what is found of them.
#include "calibrate/fit/experts.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "calibrate/bench/operands.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "models/operations/grouped.hpp"
#include "models/pricing/grouped.hpp"

namespace orrery::calibrate {
namespace {

using Rows = std::vector<std::int64_t>;
using models::ExpertsProduct;

hardware::Gpu plain_gpu() {
  hardware::Gpu gpu;
  gpu.generation = hardware::generation_named("hopper");
  gpu.dense_peak[static_cast<std::size_t>(models::DType::bf16)] = 100_TFLOPS;
  gpu.memory_bandwidth = Bandwidth{1e30};
  gpu.gemm[models::DType::bf16] = {
      .compute_share = 1, .memory_share = 1, .overhead = {}, .corner = 4, .origin = {}};
  return gpu;
}

models::Operation experts(Rows rows) {
  const models::ExpertsShape shape{.rows = std::move(rows), .k = 1000, .n = 500};
  return experts_block(shape, ExpertsProduct::forward).operations.front();
}

}  // namespace

// 1 + 1/2 + 1/3 = 11/6: shares of 6, 3 and 2 in 11.
TEST_CASE("Rows by Zipf's law fall as one over the expert's place, and none is lost") {
  CHECK(zipf_rows(11, 3) == Rows{6, 3, 2});
  const Rows many = zipf_rows(1000, 64);
  CHECK(std::accumulate(many.begin(), many.end(), std::int64_t{0}) == 1000);
  CHECK(*std::min_element(many.begin(), many.end()) >= 0);
  CHECK(even_rows(7, 3) == Rows{3, 2, 2});
}

// The rule fills tiles of 128: {128, 128} takes what one product of 256 rows does, {250, 6} half as
// long again. Times are 1.5 of the rule.
TEST_CASE("A ratio over the rule is recovered and reported relative to one plain GEMM") {
  const hardware::Gpu gpu = plain_gpu();
  std::vector<GroupedPoint> points;
  for (const Rows& rows : {Rows{128, 128}, Rows{250, 3, 3}}) {
    const models::Operation op = experts(rows);
    points.push_back({op, scaled(models::grouped_time(op, gpu), 1.5)});
  }
  const auto fits = fit_grouped(points, gpu);
  REQUIRE(fits.size() == 1);
  const GroupedFit& fit = fits.at(models::DType::bf16);
  REQUIRE(fit.residuals.size() == 2);
  for (const auto& each : fit.residuals) CHECK(each.log_ratio == Approx(std::log(1.5)));
  CHECK(fit.residuals[0].shape.m == 128);
  CHECK(fit.even == Approx(1.5));
  CHECK(fit.skewed == Approx(1.5 * 512 / 256));  // 256 + 128 + 128 rows for 256
  hardware::Gpu without = gpu;
  without.gemm.clear();
  CHECK(fit_grouped(points, without).empty());
}

TEST_CASE("The last expert with rows is compared before grouped GEMMs are timed") {
  /// Adds to one element of the last expert with rows: of three rows the last, column (6 - 1) / 2.
  class Wrong final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      CpuDevice::run(kernel);
      reinterpret_cast<float*>(kernel.writes[0].data)[4 * 6 + 2] += 1;
    }
  };
  const models::ExpertsShape shape{.rows = {2, 3, 0}, .k = 5, .n = 6, .dtype = models::DType::fp32};
  const models::Block block = experts_block(shape, ExpertsProduct::forward);
  executor::CpuDevice right;
  const Operands operands{right, block, 1, 1};
  CHECK_NOTHROW(check_product(right, block.operations.front(), operands));
  for (const auto which : {ExpertsProduct::input_gradient, ExpertsProduct::weight_gradient}) {
    const models::Block other = experts_block(shape, which);
    const Operands others{right, other, 1, 1};
    CHECK_NOTHROW(check_product(right, other.operations.front(), others));
  }
  Wrong wrong;
  const Operands others{wrong, block, 1, 1};
  CHECK_THROWS_WITH(check_product(wrong, block.operations.front(), others),
                    Catch::Matchers::Contains("which should be"));
}

}  // namespace orrery::calibrate
