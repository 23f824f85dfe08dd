// Checks a GEMM against sums in fp64 before it is timed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/bench/operands.hpp"
#include "executor/device/cpu/fp8.hpp"
#include "executor/device/fp8_operand.hpp"
#include "executor/device/grouped.hpp"
#include "executor/device/low_precision.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::View;
using models::DType;
using models::Operation;

/// One period of an operand's values as the GEMM sees them. In an fp8 GEMM the fp8 format follows
/// from the operation, and operands stored in another format are rounded to it.
class Multiplied {
 public:
  Multiplied(const View& view, const Operation& product, std::size_t read)
      : numbers_(static_cast<std::size_t>(std::min(NumberPattern::period, view.elements()))) {
    const NumberPattern stored{view.dtype, Numbers::both_signs, 1};
    const auto count = static_cast<std::int64_t>(numbers_.size());
    if (view.dtype == DType::fp8) {
      decode(stored, executor::fp8_read(product, read));
      return;
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] = static_cast<float>(stored.at(static_cast<std::int64_t>(i)));
    }
    if (product.dtype != DType::fp8) return;
    executor::cpu::round_to_fp8(numbers_.data(), count, executor::fp8_read(product, read));
  }

  double at(std::int64_t index) const {
    return numbers_[static_cast<std::size_t>(index % NumberPattern::period)];
  }

 private:
  void decode(const NumberPattern& stored, executor::Fp8 format) {
    std::vector<std::byte> bytes = stored.bytes();
    const auto count = static_cast<std::int64_t>(numbers_.size());
    bytes.resize(static_cast<std::size_t>(executor::fp8_scale_offset(count)));
    const auto* inverse = reinterpret_cast<const std::byte*>(&fp8_inverse);
    bytes.insert(bytes.end(), inverse, inverse + sizeof fp8_inverse);
    executor::cpu::decode({bytes.data(), DType::fp8, {1, 1, count}}, format, numbers_.data());
  }

  std::vector<float> numbers_;
};

/// The GEMM that is checked: the only one, or that of the last expert with rows.
executor::ExpertProduct looked_at(const Operation& op) {
  if (op.kind != models::OpKind::grouped_gemm) return {.shape = op.gemm()};
  const std::vector<executor::ExpertProduct> all = executor::expert_products(op);
  const auto has_rows = [](const executor::ExpertProduct& each) {
    return each.shape.m > 0 && each.shape.k > 0;
  };
  const auto last = std::find_if(all.rbegin(), all.rend(), has_rows);
  ensure(last != all.rend(), "a product of experts has rows");
  return *last;
}

}  // namespace

double element_of(executor::Device& device, const View& view, std::int64_t index) {
  std::byte bytes[8]{};
  const std::int64_t size = bits(view.dtype) / 8;
  device.read(view.data + index * size, bytes, Bytes{size});
  return value_at(view.dtype, bytes);
}

/// The k terms of a dot product are of either sign, with a root mean square of 0.1^2 / 3. The sum
/// is thus about sqrt(k) times that, and so is the value of a wrong row or column. Rounding of the
/// operands (tf32) and the result (16 bits) is allowed a hundredth of it.
void check_product(executor::Device& device, const Operation& op, const Operands& operands) {
  const std::vector<View> reads = operands.bound(op, 0).reads;
  if (executor::LowPrecisionOperands{reads}.in_blocks())
    return;  // its sums depend on every block's scale
  const executor::ExpertProduct of = looked_at(op);
  const auto& [m, n, k, batch, transpose_a, transpose_b, accumulate, subtract] = of.shape;
  const View& a = operands.view(0, op.reads[0]);
  const View& b = operands.view(0, op.reads[1]);
  const View& out = operands.view(0, op.writes[0]);
  const Multiplied in_a{a, op, 0}, in_b{b, op, 1};
  const NumberPattern before{out.dtype, Numbers::both_signs, 1};
  operands.run(op, 0);
  device.finish();
  const double usual = std::sqrt(static_cast<double>(k)) * largest_number * largest_number / 3;
  for (const std::int64_t part : {std::int64_t{3}, std::int64_t{1}}) {
    const std::int64_t row = (m - 1) / part, column = (n - 1) / (part + 1);
    double expected = accumulate ? before.at(of.c + row * n + column) : 0;
    if (op.reads.size() > 2) {
      const NumberPattern bias{operands.view(0, op.reads[2]).dtype, Numbers::both_signs, 1};
      expected += bias.at(column);
    }
    for (std::int64_t i = 0; i < k; ++i) {
      expected += (subtract ? -1 : 1) * in_a.at(of.a + (transpose_a ? i * m + row : row * k + i)) *
                  in_b.at(of.b + (transpose_b ? column * k + i : i * n + column));
    }
    const double found = element_of(device, out, of.c + row * n + column);
    if (!(std::abs(found - expected) <= 0.01 * (usual + std::abs(expected)) + 1e-6)) {
      throw executor::RunFailure{
          executor::Exit::local_failure,
          fmt::format("{} computes {}, which should be {}: not timed", op.name, found, expected)};
    }
  }
}

}  // namespace orrery::calibrate
