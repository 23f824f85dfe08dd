#include "models/pricing/calibrated.hpp"

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "models/pricing/price.hpp"
#include "tests/models/questions.hpp"

using namespace orrery;
using namespace orrery::models;

namespace {

Operation activation(Activation function) {
  Operation op;
  op.kind = OpKind::activation;
  op.mutable_activation() = function;
  op.reads = {0};
  op.writes = {1};
  return op;
}

hardware::KernelCurve always_takes(Time time) {
  hardware::KernelCurve curve;
  curve.overhead = time;
  curve.rate = Bandwidth{1'000'000'000'000'000};
  return curve;
}

}  // namespace

TEST_CASE("Two functions of an activation are two kernels, by their own times where measured") {
  const Operation gelu = activation(Activation::gelu), relu = activation(Activation::relu);
  CHECK(kernel_key(gelu) == "activation gelu 1>1");
  CHECK(kernel_key(relu) == "activation relu 1>1");

  hardware::Gpu gpu;
  gpu.calibration.kernels.emplace("activation gelu 1>1", always_takes(30_us));
  gpu.calibration.kernels.emplace("activation", always_takes(20_us));
  CHECK(calibrated_time(gelu, gpu) == 30_us);
  CHECK(calibrated_time(relu, gpu) == 20_us);  // as any activation
  gpu.calibration.kernels.clear();
  CHECK_FALSE(calibrated_time(gelu, gpu));
}

TEST_CASE("What a processor converts from fewer bits has times of its own, a GPU's bytes do not") {
  Operation add;
  add.kind = OpKind::add;
  add.dtype = DType::bf16;
  add.reads = {0, 1};
  add.writes = {2};
  using Keys = std::vector<std::string>;
  CHECK(kernel_keys(add, true) == Keys{"add 2>1 bf16", "add bf16", "add 2>1", "add"});
  CHECK(kernel_keys(add, false) == Keys{"add 2>1", "add"});

  hardware::Gpu gpu;
  gpu.calibration.kernels.emplace("add bf16", always_takes(30_us));
  gpu.calibration.kernels.emplace("add 2>1", always_takes(20_us));
  CHECK(calibrated_time(add, gpu) == 20_us);
  gpu.generation.host_cores = true;
  CHECK(calibrated_time(add, gpu) == 30_us);
  add.dtype = DType::fp32;
  CHECK(calibrated_time(add, gpu) == 20_us);
  CHECK(kernel_keys(add, true) == Keys{"add 2>1", "add"});
}

// Of a GPU whose bursts are twice as fast as what it keeps for seconds.
TEST_CASE("A measured product takes as long as at the rate that a step keeps") {
  Operation product;
  product.dtype = DType::bf16;
  product.mutable_gemm() = {.m = 64, .n = 64, .k = 64};
  product.flops = Flops{2LL * 64 * 64 * 64};
  product.bytes = Bytes{3LL * 64 * 64 * 2};
  hardware::Gpu gpu = hardware::named_gpu("h200");
  gpu.calibration.gemm[DType::bf16] = hardware::ShapeResidual{{{{64, 64, 64}, 0}}};
  const Software software = plain_software();
  gpu.sustained_share = 1;
  const Time burst = kernel_time(product, gpu, software);
  REQUIRE(burst == calibrated_time(product, gpu));
  gpu.sustained_share = 0.5;
  CHECK(kernel_time(product, gpu, software) == burst * 2);
  const Operation gelu = activation(Activation::gelu);  // memory keeps its clock
  gpu.calibration.kernels.emplace("activation", always_takes(20_us));
  CHECK(kernel_time(gelu, gpu, software) == 20_us);
}
