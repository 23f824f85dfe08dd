// Clamped activations and gates on the CPU, against their equations.

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "executor/device/cpu/cpu_device.hpp"

namespace orrery::executor {
namespace {

using models::GatedColumns;
using models::Operation;
using models::OpKind;

double logistic_of(double x) {
  return 1 / (1 + std::exp(-x));
}

View row_of(std::vector<double>& numbers) {
  return {reinterpret_cast<std::byte*>(numbers.data()),
          models::DType::fp64,
          {1, 1, static_cast<std::int64_t>(numbers.size())}};
}

void run_gate(const Operation& op, const std::vector<View>& reads,
              const std::vector<View>& writes) {
  CpuDevice device;
  device.run({.operation = &op, .reads = reads, .writes = writes, .place = {}, .adam = {}});
}

TEST_CASE("Squared relu is the square above zero, and its slope twice the input") {
  std::vector<double> in{-2, 0, 0.5, 3}, out(4), dy{1, 1, 1, -2}, d_in(4);
  Operation op;
  op.kind = OpKind::activation;
  op.mutable_activation() = models::Activation::relu2;
  run_gate(op, {row_of(in)}, {row_of(out)});
  CHECK(out == std::vector<double>{0, 0, 0.25, 9});
  op.kind = OpKind::activation_backward;
  run_gate(op, {row_of(dy), row_of(in)}, {row_of(d_in)});
  CHECK(d_in == std::vector<double>{0, 0, 1, -12});
}

TEST_CASE("Beyond the limit a gate is the limit and has no gradient, and so has a value") {
  // Of gate and value: within, the gate above, the gate below (which is no limit), the value above
  // and below.
  std::vector<double> in{0.5, 9, -9, 1, 1, /*values*/ 0.25, 2, 3, 8, -8};
  std::vector<double> out(5), dy(5, 2.0), d_in(10);
  Operation op;
  op.kind = OpKind::activation;
  op.mutable_clamp() = 7;
  run_gate(op, {row_of(in)}, {row_of(out)});
  const double gates[] = {0.5, 7, -9, 1, 1}, values[] = {0.25, 2, 3, 7, -7};
  op.kind = OpKind::activation_backward;
  run_gate(op, {row_of(dy), row_of(in)}, {row_of(d_in)});
  for (std::size_t i = 0; i < 5; ++i) {
    const double g = gates[i], s = logistic_of(1.702 * g);
    CHECK(out[i] == Approx((values[i] + 1) * g * s).epsilon(1e-12));
    const double slope = s + 1.702 * g * s * (1 - s);
    CHECK(d_in[i] == Approx(i == 1 ? 0 : 2 * (values[i] + 1) * slope).epsilon(1e-12));
    CHECK(d_in[5 + i] == Approx(i > 2 ? 0 : 2 * g * s).epsilon(1e-12));
  }
}

TEST_CASE("A head's output is multiplied by the sigmoid of the columns after its queries") {
  // Two heads of one column, [query, gate] each, then a key and a value.
  std::vector<double> out{3, 5}, qkv{0.1, 0.7, 0.2, -0.4, 0.3, 0.6};
  std::vector<double> gated(2), dy{2, -1}, d_out(2), d_qkv(6, 9);
  Operation op;
  op.kind = OpKind::activation;
  op.mutable_gates() = GatedColumns::heads;
  op.mutable_heads() = {.queries = 2, .keys = 1, .dim = 1, .gated = true};
  run_gate(op, {row_of(out), row_of(qkv)}, {row_of(gated)});
  op.kind = OpKind::activation_backward;
  run_gate(op, {row_of(dy), row_of(out), row_of(qkv)}, {row_of(d_out), row_of(d_qkv)});
  const double s[] = {logistic_of(0.7), logistic_of(-0.4)};
  for (std::size_t h = 0; h < 2; ++h) {
    CHECK(gated[h] == Approx(out[h] * s[h]).epsilon(1e-12));
    CHECK(d_out[h] == Approx(dy[h] * s[h]).epsilon(1e-12));
    CHECK(d_qkv[2 * h + 1] == Approx(dy[h] * out[h] * s[h] * (1 - s[h])).epsilon(1e-12));
    CHECK(d_qkv[2 * h] == 9);  // attention's backward writes those
  }
  CHECK(d_qkv[4] == 9);
}

}  // namespace
}  // namespace orrery::executor
