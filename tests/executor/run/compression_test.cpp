// Gradients that travel narrower: what is lost, and what must not be.

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

using models::Compression;
using models::Plan;

Plan exchanging(Compression compression, double share = 1.0) {
  Plan plan = small_plan();
  plan.data = 2;
  plan.bucket = Bytes{1};
  plan.compression = compression;
  plan.compression_share = share;
  return plan;
}

TEST_CASE("Gradients in fp16 are right to its rounding") {
  const Outcome plain = run({.model = small_llama(), .plan = exchanging(Compression::none)});
  const Outcome narrow = run({.model = small_llama(), .plan = exchanging(Compression::fp16)});
  // 11 bits: half a unit of 2^-10 in each addend and in the sum.
  const double lost = distance(narrow.gradients, plain.gradients);
  CHECK(lost < 1.5e-3);
  CHECK(lost > 1e-6);
}

TEST_CASE("The largest of all gradients are all of them") {
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome plain = run({.model = model, .plan = exchanging(Compression::none), .steps = 3});
    const Outcome all = run({.model = model, .plan = exchanging(Compression::top_k), .steps = 3});
    CHECK(same_bits(all.gradients, plain.gradients));
    CHECK(same_bits(all.parameters, plain.parameters));
  }
}

TEST_CASE("With a tenth of the gradients every rank still has the same parameters") {
  Plan plan = exchanging(Compression::top_k, 0.1);
  plan.data = 4;
  const Outcome plain = run({.model = small_llama(), .plan = exchanging(Compression::none)});
  const Outcome some = run({.model = small_llama(), .plan = plan, .steps = 3});
  for (const Tensors& each : some.of_ranks) CHECK(same_bits(each, some.of_ranks.front()));
  CHECK(distance(some.gradients, plain.gradients) > 0.01);
}

TEST_CASE("What is not sent is kept: values and residual add up to gradient and residual") {
  models::Operation op;
  op.kind = models::OpKind::top_k;
  // Sums: 1 + 0.5, -4 + 1, 2 + 0, 3 - 3; the two largest are -3 and 2.
  std::array<double, 4> gradient{1, -4, 2, 3}, residual{0.5, 1, 0, -3};
  std::array<double, 2> values{};
  std::array<std::int32_t, 2> places{};
  const auto view = [](auto& of, models::DType type) {
    return View{reinterpret_cast<std::byte*>(of.data()),
                type,
                {1, 1, static_cast<std::int64_t>(of.size())}};
  };
  const std::array<View, 2> reads{view(gradient, models::DType::fp64),
                                  view(residual, models::DType::fp64)};
  const std::array<View, 3> writes{view(values, models::DType::fp64),
                                   view(places, models::DType::int32), reads[1]};
  CpuDevice device;
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  device.run(kernel);
  CHECK(values == std::array<double, 2>{-3, 2});
  CHECK(places == std::array<std::int32_t, 2>{1, 2});
  CHECK(residual == std::array<double, 4>{1.5, 0, 0, 0});

  // Two ranks' values: 0 + (-3 at 1) + (2 at 2), and again.
  models::Operation back;
  back.kind = models::OpKind::scatter_add;
  std::array<double, 4> all{-3, 2, -3, 2}, sum{9, 9, 9, 9};
  std::array<std::int32_t, 4> everywhere{1, 2, 1, 3};
  const std::array<View, 2> from{view(all, models::DType::fp64),
                                 view(everywhere, models::DType::int32)};
  const View to = view(sum, models::DType::fp64);
  kernel.operation = &back;
  kernel.reads = from;
  kernel.writes = {&to, 1};
  device.run(kernel);
  CHECK(sum == std::array<double, 4>{0, -6, 2, 2});
}

}  // namespace
}  // namespace orrery::executor
