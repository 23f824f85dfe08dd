#include "models/operations/builder.hpp"

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models {

OperandId BlockBuilder::add(Operand operand) {
  if (const auto known = block_.find(operand.name)) return *known;
  operand.sharding = operand.sharding.on(mesh_);
  operand.shape = local_shape(operand.uncut, operand.sharding, mesh_);
  block_.operands.push_back(std::move(operand));
  return static_cast<OperandId>(block_.operands.size() - 1);
}

OperandId BlockBuilder::operand(std::string_view name, Role role, DType dtype, const Shape& uncut,
                                const Sharding& sharding) {
  return add({.name = std::string{name},
              .role = role,
              .dtype = dtype,
              .uncut = uncut,
              .sharding = sharding});
}

OperandId BlockBuilder::parameter(const ModelTensor& tensor, DType dtype) {
  return add({.name = tensor.name,
              .role = Role::parameter,
              .dtype = dtype,
              .uncut = tensor.uncut,
              .sharding = tensor.sharding,
              .tensor = tensor.tied_to.empty() ? tensor.name : tensor.tied_to,
              .view = tensor.view,
              .initial = tensor.initial,
              .adapter = tensor.adapter,
              .frozen = tensor.frozen,
              .transposed = tensor.transposed});
}

OperandId BlockBuilder::gradient(const ModelTensor& tensor, DType dtype, AxisSet partial) {
  Sharding sharding = tensor.sharding;
  sharding.partial = partial;
  return add({.name = tensor.name + ".grad",
              .role = Role::gradient,
              .dtype = dtype,
              .uncut = tensor.uncut,
              .sharding = sharding,
              .tensor = tensor.tied_to.empty() ? tensor.name : tensor.tied_to,
              .view = tensor.view,
              .adapter = tensor.adapter,
              .transposed = tensor.transposed});
}

Operation& BlockBuilder::add(OpKind kind, std::string_view name, Operands reads, Operands writes) {
  Operation op;
  op.kind = kind;
  op.name = name;
  op.pass = pass_;
  op.reads.assign(reads);
  op.writes.assign(writes);
  for (const OperandId id : op.reads) op.bytes += at(id).moved();
  for (const OperandId id : op.writes) op.bytes += at(id).moved();
  if (!op.writes.empty()) op.dtype = at(op.writes.front()).dtype;
  block_.operations.push_back(std::move(op));
  return block_.operations.back();
}

void BlockBuilder::read(Operation& op, OperandId id) const {
  op.reads.push_back(id);
  op.bytes += at(id).moved();
}

void BlockBuilder::write(Operation& op, OperandId id) const {
  op.writes.push_back(id);
  op.bytes += at(id).moved();
}

Bytes BlockBuilder::difference(OperandId id, const Sharding& sharding) const {
  Operand in_use = at(id);
  in_use.shape = shape(id, sharding);
  return in_use.moved() - at(id).moved();
}

void BlockBuilder::need(Operation& op, OperandId id, const Sharding& sharding) const {
  const Sharding here = sharding.on(mesh_);
  if (here == at(id).sharding) return;
  op.needs.push_back({id, here});
  const auto reads = std::ranges::count(op.reads, id);
  op.bytes += difference(id, here) * reads;
}

void BlockBuilder::make(Operation& op, OperandId id, const Sharding& sharding) const {
  const Sharding here = sharding.on(mesh_);
  if (here == at(id).sharding) return;
  op.makes.push_back({id, here});
  op.bytes += difference(id, here);
}

const Operation* BlockBuilder::writer(OperandId id) const {
  for (auto op = block_.operations.rbegin(); op != block_.operations.rend(); ++op) {
    if (std::ranges::find(op->writes, id) != op->writes.end()) return &*op;
  }
  return nullptr;
}

Operation& BlockBuilder::gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                              GemmShape shape, DType dtype) {
  Operation& op = add(OpKind::gemm, name, {a, b}, {out});
  op.time_class = TimeClass::gemm;
  op.mutable_gemm() = shape;
  op.dtype = dtype;
  op.flops = multiplied<Flops>(2, shape.m, shape.n, shape.k);
  if (shape.accumulate) op.bytes += at(out).bytes();  // read, then written
  return op;
}

Operation& BlockBuilder::collective(Collective kind, std::string_view name, CommunicatorRole role,
                                    OperandId from, OperandId to) {
  Operation& op = add(OpKind::collective, name, {from}, {to});
  const std::vector<Communicator> groups = communicators_of(mesh_);
  const auto group = std::ranges::find(groups, role, &Communicator::role);
  ensure(group != groups.end(), "a block's collective has no communicator");
  op.mutable_communicator() = static_cast<std::uint16_t>(group - groups.begin());
  op.queue = group->lane;
  op.time_class = group->time_class;
  op.mutable_collective() = kind;
  op.bytes = std::max(at(from).moved(), at(to).moved());
  return op;
}

Operation& BlockBuilder::batched_gemm(std::string_view name, OperandId a, OperandId b,
                                      OperandId out, GemmShape shape, DType dtype) {
  Operation& op = gemm(name, a, b, out, shape, dtype);
  op.kind = OpKind::batched_gemm;
  op.time_class = TimeClass::attention;
  op.flops = multiplied<Flops>(2, shape.m, shape.n, shape.k, shape.batch);
  return op;
}

Operation& BlockBuilder::grouped_gemm(std::string_view name, OperandId a, OperandId b,
                                      OperandId out, GemmShape shape, DType dtype) {
  Operation& op = gemm(name, a, b, out, shape, dtype);
  op.kind = OpKind::grouped_gemm;
  const std::int64_t rows = shape.transpose_a ? shape.k : shape.m;
  op.mutable_group_rows().assign(static_cast<std::size_t>(shape.batch), rows / shape.batch);
  op.flops = part_of(op.flops, at(a).filled);
  return op;
}

Flops BlockBuilder::attention_flops(const AttentionShape& shape) {
  const Flops per_pair =
      multiplied<Flops>(2, shape.batch, shape.heads, shape.head_dim + shape.value_width());
  const std::int64_t s = shape.seq;
  if (shape.keys > 0) return per_pair * s * shape.keys;
  if (!shape.causal) return per_pair * s * s;
  const std::int64_t w = shape.window > 0 ? std::min(shape.window, s) : s;
  return Flops{per_pair.count() / 2} * multiplied<Flops>(w, 2 * s - w).count();
}

/// Turns saved operands that no operation reads or writes into temporaries, so they take no memory.
void BlockBuilder::drop_untouched() {
  std::vector<bool> touched(block_.operands.size(), false);
  for (const Operation& op : block_.operations) {
    for (const OperandId id : op.reads) touched[id] = true;
    for (const OperandId id : op.writes) touched[id] = true;
  }
  for (std::size_t id = 0; id < touched.size(); ++id) {
    Operand& each = block_.operands[id];
    if (each.role == Role::saved && !touched[id]) each.role = Role::temporary;
  }
}

Block BlockBuilder::finish() {
  drop_untouched();
  link(block_);
  return std::move(block_);
}

}  // namespace orrery::models
