// 8 bits on the GPU: what its kernels quantise and turn for products, held to the processor's.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "executor/device/cpu/fp8.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/half.hpp"
#include "tests/executor/device/cuda/gpu_device.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::Operation;
using models::Pass;

std::vector<float> filled(std::int64_t count, const Fill& fill) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    Bf16 stored;
    narrow(static_cast<float>(fill(i)), stored);
    numbers.push_back(widened(stored));
  }
  return numbers;
}
std::vector<Bf16> in_bf16(const std::vector<float>& numbers) {
  std::vector<Bf16> stored(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) narrow(numbers[i], stored[i]);
  return stored;
}

/// Bytes of an fp8 operand of so many elements, its scale among them.
std::size_t room(std::int64_t count) {
  return static_cast<std::size_t>(fp8_scale_offset(count) + fp8_scale_room);
}

/// As the processor stores these numbers.
std::vector<std::byte> by_processor(std::vector<float> numbers, Fp8 format) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<std::byte> bytes(room(count));
  cpu::quantise(numbers.data(), {bytes.data(), DType::fp8, {1, 1, count}}, format);
  return bytes;
}

/// What those bytes stand for.
Numbers decoded(std::vector<std::byte> bytes, std::int64_t count, Fp8 format) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  cpu::decode({bytes.data(), DType::fp8, {1, 1, count}}, format, numbers.data());
  return {numbers.begin(), numbers.end()};
}

/// As the GPU does, its numbers `askew` elements off 16 bytes.
std::vector<std::byte> by_gpu(const std::vector<float>& numbers, Pass pass, std::size_t askew = 0) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<Bf16> stored = in_bf16(numbers);
  stored.insert(stored.begin(), askew, Bf16{0x7f80});  // infinities, which nobody shall see
  const DeviceArray<Bf16> from{stored};
  const DeviceArray<std::byte> to{std::vector<std::byte>(room(count))};
  Operation op;
  op.kind = OpKind::quantise;
  op.dtype = DType::fp8;
  op.pass = pass;
  const std::vector<View> reads{
      {reinterpret_cast<std::byte*>(from.data() + askew), DType::bf16, {1, 1, count}}};
  const std::vector<View> writes{{to.data(), DType::fp8, {1, 1, count}}};
  const DeviceArray<std::byte> scratch{
      std::vector<std::byte>(static_cast<std::size_t>(scratch_bytes(op, reads)))};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  launch_kernel(kernel, nullptr, scratch.data());
  finish_device();
  scratch.values();
  return to.values();
}

TEST_CASE("The GPU quantises to the processor's bytes and scale") {
  const Fill of = normal(3);
  const auto spread = [&](std::int64_t i) { return std::exp(4 * of(i)) * (i % 3 == 0 ? -1 : 1); };
  for (const std::int64_t count : {1, 16, 77, 4096, 70001}) {
    for (const std::size_t askew : {0U, 3U}) {
      const std::vector<float> numbers = filled(count, spread);
      CHECK(by_gpu(numbers, Pass::forward, askew) == by_processor(numbers, Fp8::e4m3));
      CHECK(by_gpu(numbers, Pass::recompute, askew) == by_processor(numbers, Fp8::e4m3));
      CHECK(by_gpu(numbers, Pass::backward, askew) == by_processor(numbers, Fp8::e5m2));
    }
  }
}

TEST_CASE("The GPU finds the largest number wherever it lies") {
  for (const std::size_t place : {0U, 8191U, 8192U, 50000U, 69999U}) {
    std::vector<float> numbers(70000, 0.5F);
    numbers[place] = -448;
    const std::vector<std::byte> bytes = by_gpu(numbers, Pass::forward);
    CHECK(decoded(bytes, 70000, Fp8::e4m3)[place] == -448);
    CHECK(bytes == by_processor(numbers, Fp8::e4m3));
  }
}

TEST_CASE("On the GPU too zeros stay zeros, and one number that is none takes all with it") {
  const std::vector<float> zeros(40, 0.0F);
  CHECK(by_gpu(zeros, Pass::forward) == by_processor(zeros, Fp8::e4m3));
  for (const float none : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> numbers(40, 1.0F);
    numbers[33] = none;
    for (const double each : decoded(by_gpu(numbers, Pass::backward), 40, Fp8::e5m2)) {
      CHECK(std::isnan(each));
    }
  }
}

/// A product of a layer, as lowering makes it, with operands on the GPU.
struct Product {
  enum class Of { output, input_gradient, weight_gradient };

  Operation op;
  std::vector<float> a, b;  // as they are multiplied: what the stored bytes stand for
  std::vector<std::unique_ptr<DeviceArray<std::byte>>> memory;
  std::vector<View> reads, writes;

  Product(Of of, models::GemmShape shape) {
    op.dtype = DType::fp8;
    op.mutable_gemm() = shape;
    op.mutable_gemm().transpose_a = op.mutable_gemm().accumulate = of == Of::weight_gradient;
    op.mutable_gemm().transpose_b = of == Of::input_gradient;
    op.pass = of == Of::output ? Pass::forward : Pass::backward;
    a = filled(shape.m * shape.k, normal(1));
    b = filled(shape.k * shape.n, normal(2));
    add_fp8(a, fp8_read(op, 0));
    of == Of::weight_gradient ? add_fp8(b, fp8_read(op, 1)) : add_weight();
  }

  Kernel kernel() const {
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = reads;
    kernel.writes = writes;
    return kernel;
  }

  /// What lies at [row][k] of an operand that may be stored transposed.
  double at(std::size_t operand, std::int64_t row, std::int64_t k) const {
    const models::GemmShape& s = op.gemm();
    const bool turned = operand == 0 ? s.transpose_a : !s.transpose_b;
    const std::int64_t rows = operand == 0 ? s.m : s.n;
    return (operand == 0 ? a
                         : b)[static_cast<std::size_t>(turned ? k * rows + row : row * s.k + k)];
  }

 private:
  void add(const std::vector<std::byte>& bytes, DType dtype, std::int64_t count) {
    memory.push_back(std::make_unique<DeviceArray<std::byte>>(bytes));
    reads.push_back({memory.back()->data(), dtype, {1, 1, count}});
  }
  void add_fp8(std::vector<float>& numbers, Fp8 format) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    const std::vector<std::byte> bytes = by_processor(numbers, format);
    add(bytes, DType::fp8, count);
    const Numbers stored = decoded(bytes, count, format);
    std::copy(stored.begin(), stored.end(), numbers.begin());
  }
  /// In bf16, as it is stored.
  void add_weight() {
    const std::vector<Bf16> stored = in_bf16(b);
    std::vector<std::byte> bytes(stored.size() * sizeof(Bf16));
    std::memcpy(bytes.data(), stored.data(), bytes.size());
    add(bytes, DType::bf16, static_cast<std::int64_t>(stored.size()));
    cpu::round_to_fp8(b.data(), static_cast<std::int64_t>(b.size()), Fp8::e4m3);
  }
};

using Of = Product::Of;
constexpr Of every_product[] = {Of::output, Of::input_gradient, Of::weight_gradient};
const models::GemmShape fp8_shapes[] = {
    {.m = 16, .n = 16, .k = 16}, {.m = 80, .n = 64, .k = 48}, {.m = 64, .n = 144, .k = 208}};

TEST_CASE("Operands of a product in 8 bits lie with k side by side, however they were stored") {
  for (const Of of : every_product) {
    for (const models::GemmShape& shape : fp8_shapes) {
      Product product{of, shape};
      const models::GemmShape& s = product.op.gemm();
      INFO("product " << static_cast<int>(of) << " of " << s.m << " " << s.n << " " << s.k);
      CHECK(fp8_product_refusal(product.op).empty());
      const DeviceArray<std::byte> scratch{
          std::vector<std::byte>(static_cast<std::size_t>(fp8_product_scratch(product.op)))};
      const Fp8Operands found = fp8_operands(product.kernel(), nullptr, scratch.data());
      finish_device();
      scratch.values();
      CHECK(found.a.format == (of == Of::input_gradient ? Fp8::e5m2 : Fp8::e4m3));
      CHECK(found.b.format == (of == Of::weight_gradient ? Fp8::e5m2 : Fp8::e4m3));
      for (const std::size_t operand : {0U, 1U}) {
        const std::int64_t rows = operand == 0 ? s.m : s.n;
        const std::vector<float> numbers = numbers_of(operand == 0 ? found.a : found.b, rows * s.k);
        std::size_t wrong = 0;
        for (std::int64_t i = 0; i < rows * s.k; ++i) {
          const double expected = product.at(operand, i / s.k, i % s.k);
          if (numbers[static_cast<std::size_t>(i)] != expected) ++wrong;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("Gradients of biases are the columns' sums, added to what is there") {
  for (const models::GemmShape& shape : fp8_shapes) {
    Product product{Of::weight_gradient, shape};
    const models::GemmShape& s = product.op.gemm();
    const DeviceArray<float> gradient{std::vector<float>(static_cast<std::size_t>(s.n), 10.0F)};
    product.writes = {{},
                      {reinterpret_cast<std::byte*>(gradient.data()), DType::fp32, {1, 1, s.n}}};
    const DeviceArray<std::byte> scratch{
        std::vector<std::byte>(static_cast<std::size_t>(fp8_product_scratch(product.op)))};
    const Kernel kernel = product.kernel();
    fp8_bias_gradient(kernel, fp8_operands(kernel, nullptr, scratch.data()), nullptr);
    finish_device();
    const std::vector<float> found = gradient.values();
    for (std::int64_t column = 0; column < s.n; ++column) {
      double sum = 10;
      for (std::int64_t k = 0; k < s.k; ++k) sum += product.at(1, column, k);
      REQUIRE(found[static_cast<std::size_t>(column)] == Approx(sum).epsilon(1e-5).margin(1e-5));
    }
  }
}

TEST_CASE("Products in 8 bits of sizes that tensor cores do not take are refused") {
  Operation op;
  op.dtype = DType::fp8;
  op.mutable_gemm() = {.m = 32, .n = 24, .k = 16};
  CHECK(fp8_product_refusal(op) ==
        "fp8 GEMMs need sizes that are multiples of 16, this one is [32, 16] x [16, 24]");
  op.mutable_gemm().n = 48;
  CHECK(fp8_product_refusal(op).empty());
  op.kind = OpKind::batched_gemm;
  CHECK(fp8_product_refusal(op) == "the GPU supports fp8 only for the GEMMs of layers");
}

}  // namespace
}  // namespace orrery::executor::cuda
