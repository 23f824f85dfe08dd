#include "models/pricing/calibrated.hpp"

#include <catch2/catch.hpp>

using namespace orrery;
using namespace orrery::models;

namespace {

Operation activation(Activation function) {
  Operation op;
  op.kind = OpKind::activation;
  op.activation = function;
  op.reads = {0};
  op.writes = {1};
  return op;
}

hardware::KernelCurve always(Time time) {
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
  gpu.calibration.kernels.emplace("activation gelu 1>1", always(30_us));
  gpu.calibration.kernels.emplace("activation", always(20_us));
  CHECK(calibrated_time(gelu, gpu) == 30_us);
  CHECK(calibrated_time(relu, gpu) == 20_us);  // as any activation
  gpu.calibration.kernels.clear();
  CHECK_FALSE(calibrated_time(gelu, gpu));
}
