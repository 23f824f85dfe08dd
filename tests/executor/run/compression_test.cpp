// Gradients that travel narrower: what is lost, and what must not be.

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/cpu/cpu_device.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

using models::Compression;
using models::Plan;

Plan exchanging(Compression compression, double share = 1.0) {
  Plan plan = small_plan();
  plan.data = 2;
  plan.sharding.bucket = Bytes{1};
  plan.compression.kind = compression;
  plan.compression.share = share;
  return plan;
}

TEST_CASE("Gradients in fp16 are right to its rounding") {
  const Outcome plain = run({.model = small_llama(), .plan = exchanging(Compression::none)});
  const Outcome narrow = run({.model = small_llama(), .plan = exchanging(Compression::fp16)});
  // 11 bits: half a unit of 2^-10 in each term and in the sum.
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

Plan factoring(std::int64_t rank) {
  Plan plan = exchanging(Compression::power_sgd);
  plan.compression.rank = rank;
  return plan;
}

/// Of all gradients together: a small tensor's part of a bucket may be lost whole.
double lost_of(const Tensors& found, const Tensors& right) {
  double missed = 0, all = 0;
  for (const auto& [name, numbers] : right) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      missed += std::pow(found.at(name)[i] - numbers[i], 2);
      all += numbers[i] * numbers[i];
    }
  }
  return std::sqrt(missed / all);
}

TEST_CASE("Factors of full rank are all of the gradients") {
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome plain = run({.model = model, .plan = exchanging(Compression::none), .steps = 3});
    const Outcome full = run({.model = model, .plan = factoring(1 << 14), .steps = 3});
    CHECK(distance(full.gradients, plain.gradients) < 1e-12);
    CHECK(distance(full.parameters, plain.parameters) < 1e-9);
  }
}

TEST_CASE(
    "With factors of rank two every rank still has the same parameters, and rank eight loses "
    "less") {
  Plan plan = factoring(2);
  plan.data = 4;
  const Outcome plain = run({.model = small_llama(), .plan = exchanging(Compression::none)});
  const Outcome some = run({.model = small_llama(), .plan = plan, .steps = 3});
  for (const Tensors& each : some.of_ranks) CHECK(same_bits(each, some.of_ranks.front()));
  // What a projection leaves out is no more than there was.
  const double lost = lost_of(some.gradients, plain.gradients);
  CHECK(lost > 0.01);
  CHECK(lost < 1);
  plan.compression.rank = 8;
  const Outcome more = run({.model = small_llama(), .plan = plan});
  CHECK(lost_of(more.gradients, plain.gradients) < lost);
}

TEST_CASE("A factor that is not summed, or a rest with the wrong sign, is caught") {
  const Outcome right = run({.model = small_llama(), .plan = factoring(2), .steps = 3});
  // The second factor of every bucket stays each rank's own.
  Job job{.model = small_llama(), .plan = factoring(2), .steps = 3};
  job.tamper = [](models::Program& program) {
    for (models::JointCollective& each : program.collectives) {
      if (each.low_rank_factor && each.part == 1) {
        each.communicator = program.communicator(models::CommunicatorRole::tensor);
      }
    }
  };
  CHECK_THROWS_WITH(run(job), Catch::Contains(".q': there is only one replica"));
  job.tamper = [](models::Program& program) {
    for (models::Block& block : program.blocks) {
      for (models::Operation& op : block.operations) {
        if (op.gemm().subtract) op.mutable_gemm().subtract = false;
      }
    }
  };
  CHECK(distance(run(job).parameters, right.parameters) > 1e-6);
}

// The first micro-batch's loss gradient of whichever rank comes first is no number.
TEST_CASE("Gradients that are not finite leave nothing behind in what compression keeps") {
  for (const Plan& plan : {exchanging(Compression::top_k, 0.1), factoring(2)}) {
    std::atomic<bool> done{false};
    const auto poison = [&](Kernel& kernel) {
      if (kernel.operation->kind != models::OpKind::cross_entropy_backward) return;
      if (done.exchange(true)) return;
      const View& exponentials = kernel.reads[0];
      std::fill_n(reinterpret_cast<double*>(exponentials.data), exponentials.elements(),
                  std::nan(""));
    };
    const Outcome one = run({.model = small_llama(), .plan = plan, .steps = 3, .disturb = poison});
    CHECK(one.steps[0].skipped == 1);
    CHECK(one.steps[2].skipped == 1);
    CHECK(std::isfinite(one.steps[2].gradient_norm));
    for (const Tensors& each : one.of_ranks) CHECK(same_bits(each, one.of_ranks.front()));
  }
}

TEST_CASE("A step of PowerSGD by hand") {
  // M = (3 0; 4 0; 0 0), Q = (1, 7)':  P = M Q = (3, 4, 0)', of length 5: (0.6, 0.8, 0)'
  // Q = M' P = (1.8 + 3.2, 0)' = (5, 0)';  P Q' = (3 0; 4 0; 0 0): of rank one, all of M
  std::array<double, 6> m{3, 0, 4, 0, 0, 0};
  std::array<double, 3> p{};
  std::array<double, 2> q{1, 7};
  const auto view = [](auto& of, std::int64_t rows, std::int64_t columns) {
    return View{reinterpret_cast<std::byte*>(of.data()), models::DType::fp64, {1, rows, columns}};
  };
  const View all = view(m, 3, 2), left = view(p, 3, 1), right = view(q, 2, 1);
  CpuDevice device;
  const auto perform = [&](models::OpKind kind, std::vector<View> reads, const View& to,
                           const models::GemmShape& shape = {}) {
    models::Operation op;
    op.kind = kind;
    op.dtype = models::DType::fp64;
    op.mutable_gemm() = shape;
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = reads;
    kernel.writes = {&to, 1};
    device.run(kernel);
  };
  using models::OpKind;
  perform(OpKind::gemm, {all, right}, left, {.m = 3, .n = 1, .k = 2});
  CHECK(p == std::array<double, 3>{3, 4, 0});
  perform(OpKind::orthogonalise, {left}, left);
  CHECK(p[0] == Approx(0.6));
  CHECK(p[1] == Approx(0.8));
  perform(OpKind::gemm, {all, left}, right, {.m = 2, .n = 1, .k = 3, .transpose_a = true});
  CHECK(q[0] == Approx(5));
  CHECK(q[1] == 0);
  m[5] = 2;  // what rank one does not have
  perform(OpKind::gemm, {left, right}, all,
          {.m = 3, .n = 2, .k = 1, .transpose_b = true, .accumulate = true, .subtract = true});
  for (std::size_t i = 0; i < 5; ++i) CHECK(m[i] == Approx(0).margin(1e-15));
  CHECK(m[5] == 2);
}

TEST_CASE("A column without a direction of its own gets another") {
  // (1, 1)' twice: the second becomes what is left of (1, 0)', (0.5, -0.5)', as a unit vector.
  std::array<double, 4> p{1, 1, 1, 1};
  const View view{reinterpret_cast<std::byte*>(p.data()), models::DType::fp64, {1, 2, 2}};
  models::Operation op;
  op.kind = models::OpKind::orthogonalise;
  op.dtype = models::DType::fp64;
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = {&view, 1};
  kernel.writes = {&view, 1};
  CpuDevice{}.run(kernel);
  const double unit = std::sqrt(0.5);
  CHECK(p[0] == Approx(unit));
  CHECK(p[2] == Approx(unit));
  CHECK(p[1] == Approx(unit));
  CHECK(p[3] == Approx(-unit));
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
