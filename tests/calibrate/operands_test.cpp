// Operands with known numbers, and products compared before they are timed.
#include "calibrate/bench/operands.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/calibrate/gpu_campaign.hpp"

namespace orrery::calibrate {

TEST_CASE("A product is compared before it is timed, in both layouts") {
  /// Adds to one element that is looked at: row (8 - 1) / 1, column (4 - 1) / 2.
  class Wrong final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      CpuDevice::run(kernel);
      reinterpret_cast<float*>(kernel.writes[0].data)[7 * 4 + 1] += 1;
    }
  };
  Small small;
  for (const bool transposed : {false, true}) {
    Block block = small.product;
    block.operations[0].mutable_gemm().transpose_b = transposed;
    if (transposed) block.operands[1].shape = {1, 4, 6};
    executor::CpuDevice right;
    const Operands operands{right, block, 1, 1};
    CHECK_NOTHROW(check_product(right, block.operations.front(), operands));
    Wrong wrong;
    const Operands others{wrong, block, 1, 1};
    CHECK_THROWS_WITH(check_product(wrong, block.operations.front(), others),
                      Catch::Matchers::Contains("which should be"));
  }
}

// Of a rank: out = a w, da = dout w' and dw += a' dout, a in e4m3 and dout in e5m2.
TEST_CASE("A product in fp8 is compared with what its bytes mean, whichever format they are in") {
  using models::DType;
  Small small;
  for (const int which : {0, 1, 2}) {
    Block block = small.product;
    Operation& op = block.operations[0];
    op.dtype = DType::fp8;
    op.pass = which == 0 ? models::Pass::forward : models::Pass::backward;
    op.mutable_gemm().transpose_b = which == 1;
    op.mutable_gemm().transpose_a = op.mutable_gemm().accumulate = which == 2;
    block.operands[0].dtype = DType::fp8;
    block.operands[1].dtype = which == 2 ? DType::fp8 : DType::bf16;
    if (which == 1) block.operands[1].shape = {1, 4, 6};
    if (which == 2) block.operands[0].shape = {1, 6, 8};
    CHECK(footprint(block) == 768_B);  // three operands, each from a multiple of 256 on
    executor::CpuDevice device;
    const Operands operands{device, block, 1, 1};
    CHECK_NOTHROW(check_product(device, block.operations.front(), operands));
    op.pass = which == 0 ? models::Pass::backward : models::Pass::forward;
    const Block other = block;  // multiplied in other formats than it is compared in
    op.pass = which == 0 ? models::Pass::forward : models::Pass::backward;
    class Other final : public executor::CpuDevice {
     public:
      explicit Other(const Operation& op) : op_{op} {}
      void run(const executor::Kernel& kernel) override {
        executor::Kernel changed = kernel;
        changed.operation = &op_;
        CpuDevice::run(changed);
      }

     private:
      const Operation& op_;
    } wrong{other.operations[0]};
    const Operands others{wrong, block, 1, 1};
    CHECK_THROWS_WITH(check_product(wrong, block.operations.front(), others),
                      Catch::Matchers::Contains("which should be"));
  }
}

TEST_CASE("Operands repeat one known sequence, whatever their length") {
  executor::CpuDevice device;
  Block block;
  block.operands.push_back(
      {"x", Role::temporary, models::DType::bf16, {1, 3, NumberPattern::period}});
  const Operands operands{device, block, 2, 1};
  const NumberPattern pattern{models::DType::bf16, Numbers::both_signs, 1};
  for (const std::int64_t at : {std::int64_t{0}, NumberPattern::period - 1, NumberPattern::period,
                                3 * NumberPattern::period - 1}) {
    CHECK(element_of(device, operands.view(1, 0), at) == pattern.at(at));
    CHECK(std::abs(pattern.at(at)) <= 0.1001);
  }
}

// 0x78 is 2^-7 as an e8m0 scale: with numbers of at most 448 no product of two is below 2^-126,
// where processors are many times slower.
TEST_CASE("Scales of blocks are neither zero nor tiny, codes of moments are those of zeros") {
  for (const auto& [numbers, code] :
       {std::pair{Numbers::both_signs, 0x78}, std::pair{Numbers::positive, 0}}) {
    const NumberPattern pattern{models::DType::uint8, numbers, 1};
    for (const std::byte each : pattern.bytes()) REQUIRE(std::to_integer<int>(each) == code);
  }
}

// Uniform in +-0.1 of 65521 numbers: the mean is off zero by 0.1 / sqrt(3 x 65521) = 0.0002, five
// of which are far below what positive numbers would have, 0.055.
TEST_CASE("What is multiplied has both signs and a mean of zero; moments and sums are positive") {
  Block block;
  const auto operand = [&](Role role, models::DType dtype) {
    block.operands.push_back({"x", role, dtype, {1, 1, NumberPattern::period}});
  };
  operand(Role::input, models::DType::bf16);
  operand(Role::parameter, models::DType::bf16);
  operand(Role::gradient, models::DType::fp32);
  operand(Role::saved, models::DType::fp32);      // of a plan in fp32: multiplied
  operand(Role::optimizer, models::DType::fp32);  // under a root
  operand(Role::saved, models::DType::fp32);      // a loss's sums: divide
  Operation product;
  product.reads = {3, 1};
  product.writes = {2};
  block.operations.push_back(product);
  executor::CpuDevice device;
  const Operands operands{device, block, 1, 1};
  for (models::OperandId id = 0; id < 6; ++id) {
    INFO(id);
    double sum = 0, least = 1;
    for (std::int64_t i = 0; i < NumberPattern::period; ++i) {
      const double number = element_of(device, operands.view(0, id), i);
      sum += number;
      least = std::min(least, number);
    }
    if (id < 4) {
      CHECK(std::abs(sum / NumberPattern::period) < 0.001);
    } else {
      CHECK(least >= 0.0099);
    }
  }
}

TEST_CASE("All operands of a point lie in one piece of memory, each on 256 bytes") {
  class Counting final : public executor::CpuDevice {
   public:
    std::byte* allocate(Bytes size) override {
      ++allocations;
      return CpuDevice::allocate(size);
    }
    int allocations = 0;
  } device;
  Small small;
  const Operands operands{device, small.block, 3, 1};
  CHECK(device.allocations == 1);
  const std::byte* const first = operands.view(0, 0).data;
  CHECK(operands.view(0, 1).data - first == 256);
  CHECK(operands.view(2, 3).data - first == 2 * footprint(small.block).count() + 3 * 256);
}

}  // namespace orrery::calibrate
