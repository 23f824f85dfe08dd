// 8-bit floating point: the formats against their definition, scales, and what the CPU makes of
// them in products.

#include "executor/device/fp8.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/fp8_operand.hpp"
#include "executor/device/half.hpp"
#include "executor/run/weights/random.hpp"

namespace orrery::executor {
namespace {

using models::DType;
using models::Operation;
using models::OpKind;
using models::Pass;

constexpr float infinite = std::numeric_limits<float>::infinity();

template <class T>
float value(unsigned code) {
  return widened(T{static_cast<std::uint8_t>(code)});
}
template <class T>
unsigned code(float of) {
  T stored;
  narrow(of, stored);
  return stored.bits;
}
template <class T>
Fp8Scale scale_for(float largest) {
  return fp8_scale_for<T>(std::bit_cast<std::uint32_t>(largest));
}
float number(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// (-1)^s 2^(e - bias) (1 + m / 2^mantissa), without the 1 and with e = 1 where e is 0.
template <class T>
double defined(unsigned code) {
  const int e = static_cast<int>(code & 0x7fU) >> T::mantissa;
  const double m = std::ldexp(code & ((1U << T::mantissa) - 1U), -T::mantissa);
  const double magnitude = std::ldexp(e == 0 ? m : 1 + m, std::max(e, 1) - T::bias);
  return code >= 0x80 ? -magnitude : magnitude;
}

template <class T>
void check_codes() {
  for (unsigned each = 0; each < 256; ++each) {
    if ((each & 0x7fU) > T::largest) continue;
    INFO("code " << each);
    CHECK(value<T>(each) == defined<T>(each));
    CHECK(std::signbit(value<T>(each)) == (each >= 0x80));
    CHECK(code<T>(value<T>(each)) == each);
  }
}

TEST_CASE("Every code of 8 bits means what the formats define") {
  check_codes<E4m3>();
  check_codes<E5m2>();
  CHECK(value<E4m3>(0x7e) == 448);
  CHECK(value<E5m2>(0x7b) == 57344);
  for (const unsigned sign : {0x00U, 0x80U}) {
    CHECK(std::isnan(value<E4m3>(sign | 0x7fU)));
    CHECK(value<E5m2>(sign | 0x7cU) == (sign == 0 ? infinite : -infinite));
    for (const unsigned nan : {0x7dU, 0x7eU, 0x7fU}) CHECK(std::isnan(value<E5m2>(sign | nan)));
  }
}

/// Between two neighbours: to the nearer, from the middle to the even one.
template <class T>
void check_rounding() {
  for (unsigned each = 0; each < T::largest; ++each) {
    INFO("code " << each);
    const float low = value<T>(each), high = value<T>(each + 1);
    const float middle = (low + high) / 2;
    CHECK(code<T>(middle) == (each % 2 == 0 ? each : each + 1));
    CHECK(code<T>(std::nextafter(middle, 0.0F)) == each);
    CHECK(code<T>(std::nextafter(middle, infinite)) == each + 1);
    CHECK(code<T>(-middle) == (code<T>(middle) | 0x80U));
  }
}

TEST_CASE("Numbers between two codes go to the nearer, from the middle to the even one") {
  check_rounding<E4m3>();
  check_rounding<E5m2>();
}

TEST_CASE("What is beyond the largest number becomes it, and NaN stays NaN") {
  for (const float beyond : {449.0F, 480.0F, 1e30F, infinite}) {
    CHECK(value<E4m3>(code<E4m3>(beyond)) == 448);
    CHECK(value<E4m3>(code<E4m3>(-beyond)) == -448);
  }
  for (const float beyond : {57345.0F, 65536.0F, infinite}) {
    CHECK(value<E5m2>(code<E5m2>(beyond)) == 57344);
    CHECK(value<E5m2>(code<E5m2>(-beyond)) == -57344);
  }
  CHECK(std::isnan(value<E4m3>(code<E4m3>(std::nanf("")))));
  CHECK(std::isnan(value<E5m2>(code<E5m2>(-std::nanf("")))));
}

template <class T>
void check_scale(float largest) {
  INFO("largest " << largest);
  const auto [bits, inverse] = scale_for<T>(largest);
  const double top = value<T>(T::largest), scaled = double{largest} * number(bits);
  CHECK(scaled <= top);
  CHECK(scaled > top / 2);
  CHECK((bits & 0x7fffffU) == 0);  // a power of two
  CHECK(number(bits) * number(inverse) == 1);
}

TEST_CASE("A scale is the power of two that puts the largest number below the format's") {
  for (const float each : {448.0F, 449.0F, 896.0F, 57344.0F, 57345.0F, 1.0F, 1.75F, 1.7500001F,
                           3e-7F, 1e-30F, 3.4e38F}) {
    check_scale<E4m3>(each);
    check_scale<E5m2>(each);
  }
  CHECK(number(scale_for<E4m3>(448).bits) == 1);
  CHECK(number(scale_for<E4m3>(448.1F).bits) == 0.5);
  CHECK(number(scale_for<E5m2>(1).bits) == 32768);
}

TEST_CASE("Scales of nothing, of next to nothing and of what is no number") {
  CHECK(number(scale_for<E4m3>(0).bits) == 1);
  CHECK(number(scale_for<E4m3>(0).inverse) == 1);
  // 2^-149 would want 2^157: fp32 ends at 2^127, and 1 / scale shall be a normal number too.
  CHECK(number(scale_for<E4m3>(1e-45F).bits) == 0x1p126F);
  CHECK(number(scale_for<E4m3>(1e-45F).inverse) == 0x1p-126F);
  for (const float none : {infinite, std::nanf("")}) {
    CHECK(std::isnan(number(scale_for<E4m3>(none).bits)));
    CHECK(std::isnan(number(scale_for<E5m2>(none).inverse)));
  }
}

/// A tensor of fp8 with its scale after it, or of another format.
class Tensor {
 public:
  Tensor(DType dtype, std::int64_t rows, std::int64_t columns)
      : memory_(static_cast<std::size_t>(8 * rows * columns + 2 * fp8_scale_room) / sizeof(float)) {
    view_ = {reinterpret_cast<std::byte*>(memory_.data()), dtype, {1, rows, columns}};
  }
  Tensor& fill(const std::vector<float>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (view_.dtype == DType::bf16) {
        narrow(values[i], reinterpret_cast<Bf16*>(view_.data)[i]);
      } else {
        memory_[i] = values[i];
      }
    }
    return *this;
  }
  const View& view() const { return view_; }
  const std::uint8_t* codes() const { return reinterpret_cast<const std::uint8_t*>(view_.data); }
  std::vector<float> floats() const {
    return {memory_.begin(), memory_.begin() + view_.elements()};
  }

 private:
  std::vector<float> memory_;
  View view_;
};

void perform(const Operation& op, const std::vector<View>& reads, const std::vector<View>& writes) {
  CpuDevice device;
  REQUIRE(device.refusal(op).empty());
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  device.run(kernel);
}

/// The values quantised, in forward or in backward.
Tensor quantised(const std::vector<float>& values, std::int64_t rows, Pass pass) {
  const std::int64_t columns = static_cast<std::int64_t>(values.size()) / rows;
  Tensor from{DType::fp32, rows, columns}, to{DType::fp8, rows, columns};
  Operation op;
  op.kind = OpKind::quantise;
  op.dtype = DType::fp8;
  op.pass = pass;
  perform(op, {from.fill(values).view()}, {to.view()});
  return to;
}

template <class T>
void check_errors(Pass pass) {
  const RandomStream random{1, 1};
  std::vector<float> values;
  float largest = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {  // over some twenty powers of two
    values.push_back(static_cast<float>(std::exp(4 * random.normal(i)) * (i % 2 == 0 ? 1 : -1)));
    largest = std::max(largest, std::abs(values.back()));
  }
  const Tensor stored = quantised(values, 1, pass);
  const auto inverse = *fp8_inverse_scale(stored.view());
  CHECK(inverse == number(scale_for<T>(largest).inverse));
  const double half_step = std::ldexp(1, -T::mantissa - 1);  // of 1 to 2
  const double least_normal = std::ldexp(inverse, 1 - T::bias);
  std::size_t subnormal = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(value<T>(stored.codes()[i]) * double{inverse} - values[i]);
    const double magnitude = std::max<double>(std::abs(values[i]), least_normal);
    REQUIRE(error <= half_step * magnitude);
    if (std::abs(values[i]) < least_normal) ++subnormal;
  }
  CHECK(subnormal > 0);
}

TEST_CASE("Quantised numbers are off by half a step: 2^-4 of them in e4m3, 2^-3 in e5m2") {
  check_errors<E4m3>(Pass::forward);
  check_errors<E4m3>(Pass::recompute);
  check_errors<E5m2>(Pass::backward);
}

TEST_CASE("A number that is none takes its whole tensor with it, and zeros stay zeros") {
  const Tensor zeros = quantised(std::vector<float>(65, 0.0F), 1, Pass::forward);
  CHECK(*fp8_inverse_scale(zeros.view()) == 1);
  CHECK(reinterpret_cast<const std::byte*>(fp8_inverse_scale(zeros.view())) ==
        zeros.view().data + 128);  // after 65 bytes, on 64
  for (int i = 0; i < 65; ++i) CHECK(zeros.codes()[i] == 0);
  for (const float none : {infinite, std::nanf("")}) {
    const Tensor lost = quantised({1, none, 2}, 1, Pass::backward);
    CHECK(std::isnan(*fp8_inverse_scale(lost.view())));
    for (int i = 0; i < 3; ++i) CHECK(std::isnan(value<E5m2>(lost.codes()[i])));
  }
}

Operation product(Pass pass, std::int64_t m, std::int64_t n, std::int64_t k) {
  Operation op;
  op.dtype = DType::fp8;
  op.pass = pass;
  op.mutable_gemm() = {.m = m, .n = n, .k = k};
  return op;
}

// 9 is a number of e4m3, whose steps from 8 to 16 are 1; those of e5m2 are 2, and halfway between 8
// and 10 the even one is 8. From 16 on e4m3 has steps of 2: 17 becomes 16, 19 becomes 20.

TEST_CASE("Forward multiplies activations and weights in e4m3") {
  // [9 1; 2 4] x [1 17; 0 3], the 17 being 16, + [100 200]
  const Tensor a = quantised({9, 1, 2, 4}, 2, Pass::forward);
  Tensor weight{DType::bf16, 2, 2}, bias{DType::bf16, 1, 2}, out{DType::fp32, 2, 2};
  weight.fill({1, 17, 0, 3});
  perform(product(Pass::forward, 2, 2, 2), {a.view(), weight.view(), bias.fill({100, 200}).view()},
          {out.view()});
  CHECK(out.floats() == std::vector<float>{109, 347, 102, 244});
}

TEST_CASE("Gradients of inputs are products of gradients in e5m2 and weights in e4m3") {
  // [9 2] x [1 9; 19 0]' with 8 for the gradient's 9 and 20 for the weight's 19
  const Tensor dy = quantised({9, 2}, 1, Pass::backward);
  Tensor weight{DType::bf16, 2, 2}, dx{DType::fp32, 1, 2};
  weight.fill({1, 9, 19, 0});
  Operation op = product(Pass::backward, 1, 2, 2);
  op.mutable_gemm().transpose_b = true;
  perform(op, {dy.view(), weight.view()}, {dx.view()});
  CHECK(dx.floats() == std::vector<float>{26, 160});
}

TEST_CASE("Gradients of weights are added up from activations in e4m3 and gradients in e5m2") {
  // [9 1; 3 2]' x [1 9; 2 5], the gradient's 9 being 8, and its columns, added to what is there
  const Tensor x = quantised({9, 1, 3, 2}, 2, Pass::forward);
  const Tensor dy = quantised({1, 9, 2, 5}, 2, Pass::backward);
  Tensor weight{DType::fp32, 2, 2}, bias{DType::fp32, 1, 2};
  weight.fill({1000, 0, 0, 0});
  Operation op = product(Pass::backward, 2, 2, 2);
  op.mutable_gemm().transpose_a = op.mutable_gemm().accumulate = true;
  perform(op, {x.view(), dy.view()}, {weight.view(), bias.fill({0, 100}).view()});
  CHECK(weight.floats() == std::vector<float>{1015, 87, 5, 18});
  CHECK(bias.floats() == std::vector<float>{3, 113});
}

TEST_CASE("The CPU takes 8 and 4 bits in products alone") {
  Operation op = product(Pass::forward, 1, 1, 1);
  const CpuDevice device;
  CHECK(device.refusal(op).empty());
  op.dtype = DType::fp4;
  CHECK(device.refusal(op).empty());
  op.kind = OpKind::grouped_gemm;
  CHECK(device.refusal(op).empty());
  op.dtype = DType::fp8;
  op.kind = OpKind::add;
  CHECK(device.refusal(op) == "the CPU supports fp8 only for GEMM operands");
}

}  // namespace
}  // namespace orrery::executor
