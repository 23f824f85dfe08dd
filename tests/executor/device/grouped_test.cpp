// Products of experts on the CPU, against sums by hand.
#include "executor/device/grouped.hpp"

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "models/operations/grouped.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {
namespace {

using models::DType;
using models::ExpertsProduct;
using models::ExpertsShape;
using Numbers = std::vector<double>;

/// Whole numbers of both signs, other ones in every operand.
Numbers drawn(std::int64_t count, int seed) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<double>((i * 7 + seed * 5) % 11 - 5));
  }
  return numbers;
}

/// What the device makes of the block, from operands that hold `drawn`; the result with them.
Numbers run_block_of(const models::Block& block, std::vector<Numbers>& operands) {
  CpuDevice device;
  const models::Operation& op = block.operations.front();
  std::vector<View> views;
  for (std::size_t id = 0; id < block.operands.size(); ++id) {
    operands.push_back(drawn(block.operands[id].elements(), static_cast<int>(id)));
    views.push_back({reinterpret_cast<std::byte*>(operands.back().data()), DType::fp64,
                     block.operands[id].shape});
  }
  Numbers result = operands[op.writes[0]];
  const std::vector<View> reads{views[op.reads[0]], views[op.reads[1]]};
  const std::vector<View> writes{
      {reinterpret_cast<std::byte*>(result.data()), DType::fp64, views[op.writes[0]].shape}};
  device.run({.operation = &op, .reads = reads, .writes = writes, .place = {}, .adam = {}});
  return result;
}

/// The second expert has no rows.
const ExpertsShape small{
    .rows = {2, 0, 3, 1}, .k = 4, .n = 3, .dtype = DType::fp64, .gradient = DType::fp64};

std::int64_t expert_of(std::int64_t row) {
  return row < 2 ? 0 : row < 5 ? 2 : 3;
}

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

TEST_CASE("Every row is multiplied with its own expert's weight") {
  std::vector<Numbers> in;
  const Numbers y = run_block_of(experts_block(small, ExpertsProduct::forward), in);
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t n = 0; n < 3; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < 4; ++k) {
        sum += in[0][at(row * 4 + k)] * in[1][at((expert_of(row) * 4 + k) * 3 + n)];
      }
      CHECK(y[at(row * 3 + n)] == sum);
    }
  }
}

TEST_CASE("Gradients of rows go back through their own expert's weight") {
  std::vector<Numbers> in;
  const Numbers x = run_block_of(experts_block(small, ExpertsProduct::input_gradient), in);
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t k = 0; k < 4; ++k) {
      double sum = 0;
      for (std::int64_t n = 0; n < 3; ++n) {
        sum += in[0][at(row * 3 + n)] * in[1][at((expert_of(row) * 4 + k) * 3 + n)];
      }
      CHECK(x[at(row * 4 + k)] == sum);
    }
  }
}

TEST_CASE("A weight's gradient sums over its own expert's rows; without rows it gains nothing") {
  for (const bool accumulate : {true, false}) {
    models::Block block = experts_block(small, ExpertsProduct::weight_gradient);
    block.operations[0].mutable_gemm().accumulate = accumulate;
    std::vector<Numbers> in;
    const Numbers w = run_block_of(block, in);
    for (std::int64_t e = 0; e < 4; ++e) {
      for (std::int64_t k = 0; k < 4; ++k) {
        for (std::int64_t n = 0; n < 3; ++n) {
          double sum = accumulate ? in[2][at((e * 4 + k) * 3 + n)] : 0;
          for (std::int64_t row = 0; row < 6; ++row) {
            if (expert_of(row) == e) sum += in[0][at(row * 4 + k)] * in[1][at(row * 3 + n)];
          }
          CHECK(w[at((e * 4 + k) * 3 + n)] == sum);
        }
      }
    }
  }
}

TEST_CASE("Experts whose rows are not the operation's are our mistake") {
  models::Block block = experts_block(small, ExpertsProduct::forward);
  block.operations[0].mutable_group_rows().back() += 1;
  CHECK_THROWS_WITH(expert_products(block.operations[0]),
                    Catch::Contains("experts have the operation's rows"));
}

}  // namespace orrery::executor
