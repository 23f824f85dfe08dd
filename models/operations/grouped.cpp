#include "models/operations/grouped.hpp"

#include <numeric>

#include "sim/errors.hpp"

namespace orrery::models {

namespace {

OperandId add_operand(Block& block, const char* name, DType dtype,
                      std::array<std::int64_t, 3> shape) {
  return block.add({name, Role::temporary, dtype, shape});
}

void add_operands(Block& block, Operation& op, const ExpertsShape& of, ExpertsProduct which) {
  const std::int64_t rows = of.all_rows();
  const std::array<std::int64_t, 3> x{1, rows, of.k}, y{1, rows, of.n};
  const std::array<std::int64_t, 3> w{static_cast<std::int64_t>(of.rows.size()), of.k, of.n};
  switch (which) {
    case ExpertsProduct::forward:
      op.reads = {add_operand(block, "x", of.dtype, x), add_operand(block, "w", of.dtype, w)};
      op.writes = {add_operand(block, "y", of.dtype, y)};
      op.mutable_gemm() = {.m = rows, .n = of.n, .k = of.k};
      return;
    case ExpertsProduct::input_gradient:
      op.reads = {add_operand(block, "y.grad", of.dtype, y), add_operand(block, "w", of.dtype, w)};
      op.writes = {add_operand(block, "x.grad", of.dtype, x)};
      op.mutable_gemm() = {.m = rows, .n = of.k, .k = of.n, .transpose_b = true};
      return;
    case ExpertsProduct::weight_gradient:
      op.reads = {add_operand(block, "x", of.dtype, x), add_operand(block, "y.grad", of.dtype, y)};
      op.writes = {add_operand(block, "w.grad", of.gradient, w)};
      op.mutable_gemm() = {
          .m = of.k, .n = of.n, .k = rows, .transpose_a = true, .accumulate = true};
  }
}

}  // namespace

std::int64_t ExpertsShape::all_rows() const {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

Block experts_block(const ExpertsShape& shape, ExpertsProduct which) {
  ensure(!shape.rows.empty(), "a grouped GEMM has an expert");
  constexpr const char* names[] = {"experts", "experts.dgrad", "experts.wgrad"};
  Block block;
  block.name = names[static_cast<int>(which)];
  Operation op;
  op.kind = OpKind::grouped_gemm;
  op.name = block.name;
  op.pass = which == ExpertsProduct::forward ? Pass::forward : Pass::backward;
  op.time_class = TimeClass::gemm;
  op.dtype = shape.dtype;
  add_operands(block, op, shape, which);
  op.mutable_gemm().batch = static_cast<std::int64_t>(shape.rows.size());
  op.mutable_group_rows() = shape.rows;
  op.flops = multiplied<Flops>(2, op.gemm().m, op.gemm().n, op.gemm().k);
  for (const Operand& each : block.operands) op.bytes += each.bytes();
  if (op.gemm().accumulate) op.bytes += block.operands[op.writes[0]].bytes();  // read, then written
  block.operations.push_back(std::move(op));
  return block;
}

}  // namespace orrery::models
