#include "models/operations/builder.hpp"

#include <utility>

#include "sim/errors.hpp"

namespace orrery::models {

OperandId BlockBuilder::operand(std::string_view name, Role role, DType dtype,
                                std::array<std::int64_t, 3> shape) {
  if (const auto known = block_.find(name)) return *known;
  block_.operands.push_back({std::string{name}, role, dtype, shape});
  return static_cast<OperandId>(block_.operands.size() - 1);
}

Operation& BlockBuilder::add(OpKind kind, std::string_view name, Operands reads, Operands writes) {
  Operation op;
  op.kind = kind;
  op.name = name;
  op.pass = pass_;
  op.reads.assign(reads);
  op.writes.assign(writes);
  for (const OperandId id : op.reads) op.bytes += at(id).bytes();
  for (const OperandId id : op.writes) op.bytes += at(id).bytes();
  if (!op.writes.empty()) op.dtype = at(op.writes.front()).dtype;
  block_.operations.push_back(std::move(op));
  return block_.operations.back();
}

Operation& BlockBuilder::gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                              GemmShape shape, DType dtype) {
  Operation& op = add(OpKind::gemm, name, {a, b}, {out});
  op.time_class = TimeClass::gemm;
  op.gemm = shape;
  op.dtype = dtype;
  op.flops = Flops{2 * shape.m * shape.n * shape.k};
  if (shape.accumulate) op.bytes += at(out).bytes();  // read, then written
  return op;
}

Operation& BlockBuilder::batched_gemm(std::string_view name, OperandId a, OperandId b,
                                      OperandId out, GemmShape shape, DType dtype) {
  Operation& op = gemm(name, a, b, out, shape, dtype);
  op.kind = OpKind::batched_gemm;
  op.time_class = TimeClass::attention;
  op.attention_core = true;
  op.flops = Flops{2 * shape.m * shape.n * shape.k * shape.batch};
  return op;
}

Flops BlockBuilder::attention_flops(const AttentionShape& shape) {
  const std::int64_t full =
      4 * shape.batch * shape.heads * shape.seq * shape.seq * shape.head_dim;
  return Flops{shape.causal ? full / 2 : full};
}

Block BlockBuilder::finish() {
  link(block_);
  return std::move(block_);
}

}  // namespace orrery::models
