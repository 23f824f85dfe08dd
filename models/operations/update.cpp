// The optimizer's kernels over all parameters that a rank updates.

#include <algorithm>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

Block gradient_norm_block(const BlockInputs& inputs, std::int64_t elements) {
  BlockBuilder block{"gradient_norm", Pass::step};
  const OperandId gradients = block.operand(
      "gradients", Role::input, gradient_dtype(inputs.plan, inputs.software), {1, 1, elements});
  const OperandId sum = block.operand("squared_norm", Role::temporary,
                                      state_dtype(inputs.plan.formats.precision), {1, 1, 1});
  block.add(OpKind::squared_norm, "squared_norm", {gradients}, {sum}).time_class =
      TimeClass::optimizer;
  return block.finish();
}

namespace {

/// Numbers of an 8-bit moment that share an fp32 scale.
/// Source  bitsandbytes, functional.quantize_blockwise: blocks of 256
constexpr std::int64_t moment_block = 256;

DType moment_dtype(const Plan& plan) {
  switch (plan.optimizer.moments) {
    case Moments::bf16:
      return DType::bf16;
    case Moments::int8:
      return DType::uint8;
    default:
      return master_dtype(plan);
  }
}

std::int64_t moment_scales(const Plan& plan, std::int64_t elements) {
  return plan.optimizer.moments == Moments::int8 ? (elements + moment_block - 1) / moment_block : 0;
}

/// The host holds master weights and moments: gradients are copied to it, working weights back.
/// With NVMe offload the state is read from files before the update and written after it, one after
/// the other, as DeepSpeed does unless pipeline_read and pipeline_write are set; gradients stay in
/// the host's memory.
/// Source  Rajbhandari et al. 2021, "ZeRO-Infinity", arXiv 2104.07857, section 5; DeepSpeed,
///         runtime/swap_tensor/partitioned_optimizer_swapper.py
Block adam_on_host(const BlockInputs& inputs, std::int64_t elements) {
  BlockBuilder block{"adam", Pass::step};
  const Shape shape{1, 1, elements};
  const DType storage = storage_dtype(inputs.plan.formats.precision);
  const DType state = master_dtype(inputs.plan);
  const DType sums = gradient_dtype(inputs.plan, inputs.software);
  const auto there = [&](const char* name, DType type) {
    return block.operand(name, Role::optimizer, type, shape);
  };
  const OperandId gradients = block.operand("gradients", Role::input, sums, shape);
  const OperandId parameters = block.operand("parameters", Role::parameter, storage, shape);
  const OperandId arrived = there("host.gradients", sums),
                  leaving = there("host.parameters", storage);
  const OperandId master = there("master", state), first = there("first_moment", state),
                  second = there("second_moment", state);
  const auto copy = [&](const char* name, OperandId from, OperandId to, Lane lane) {
    Operation& op = block.add(OpKind::copy, name, {from}, {to});
    op.queue = lane;
    op.time_class = TimeClass::optimizer;
    op.bytes = block.at(from).bytes();
  };
  const bool in_files = inputs.plan.offload.device == OffloadDevice::nvme;
  const auto file = [&](const char* name, FileUse use, Operands from, Operands to) {
    Operation& op = block.add(OpKind::copy, name, from, to);
    op.queue = Lane::host;
    op.time_class = TimeClass::optimizer;
    op.mutable_files() = use;
    op.bytes = Bytes{};
    for (const OperandId each : from) op.bytes += block.at(each).bytes();
  };
  const Operands state_operands{master, first, second};
  copy("gradients.to_host", gradients, arrived, Lane::copy);
  if (in_files) file("state.from_files", FileUse::read, state_operands, state_operands);
  Operation& op = block.add(OpKind::adam, "adam", {arrived, master, first, second},
                            {master, first, second, leaving});
  op.queue = Lane::host;
  op.time_class = TimeClass::optimizer;
  op.dtype = state;
  if (in_files) file("state.to_files", FileUse::write, state_operands, state_operands);
  if (in_files && inputs.plan.offload.state == Offload::parameters) {
    file("parameters.to_files", FileUse::write, {leaving}, {parameters});
  } else {
    copy("parameters.to_device", leaving, parameters, Lane::compute);
  }
  return block.finish();
}

}  // namespace

Bytes moments_bytes(const Plan& plan, std::int64_t elements) {
  const Bytes numbers = bytes_in(moment_dtype(plan), elements);
  const Bytes scales = bytes_in(DType::fp32, moment_scales(plan, elements));
  return (numbers + scales) * 2;
}

Bytes momentum_bytes(const Plan& plan, std::int64_t elements) {
  return bytes_in(state_dtype(plan.formats.precision), elements);
}

Block muon_block(const BlockInputs& inputs, std::int64_t rows, std::int64_t columns) {
  constexpr int steps = 5;
  BlockBuilder block{"muon", Pass::step};
  const DType storage = storage_dtype(inputs.plan.formats.precision);
  const DType state = state_dtype(inputs.plan.formats.precision);
  const std::int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  const Shape matrix{1, rows, columns}, square{1, m, m};
  const OperandId gradient =
      block.operand("gradient", Role::input, gradient_dtype(inputs.plan, inputs.software), matrix);
  const OperandId master = block.operand("master", Role::optimizer, state, matrix);
  const OperandId momentum = block.operand("momentum", Role::optimizer, state, matrix);
  const OperandId norm = block.operand("squared_norm", Role::temporary, state, {1, 1, 1});
  const auto scratch = [&](const char* name, DType type, const Shape& shape) {
    return block.operand(name, Role::temporary, type, shape);
  };
  const OperandId update = scratch("update", state, matrix);
  const OperandId x = scratch("x", storage, {1, m, n}),
                  next = scratch("x.next", storage, {1, m, n});
  const OperandId gram = scratch("gram", storage, square), b = scratch("b", storage, square);
  const auto pass = [&](OpKind kind, const char* name, Operands reads, Operands writes) {
    block.add(kind, name, reads, writes).time_class = TimeClass::optimizer;
  };
  const auto product = [&](const char* name, OperandId left, OperandId right, OperandId out,
                           GemmShape shape) -> Operation& {
    Operation& op = block.gemm(name, left, right, out, shape, storage);
    op.time_class = TimeClass::optimizer;
    return op;
  };
  pass(OpKind::cast, "muon.gradient", {gradient}, {update});
  pass(OpKind::add, "muon.decay", {master}, {master});
  pass(OpKind::add, "muon.momentum", {update, momentum}, {momentum});
  pass(OpKind::add, "muon.nesterov", {update, momentum}, {update});
  pass(OpKind::squared_norm, "muon.norm", {update}, {norm});
  pass(OpKind::add, "muon.normalise", {update, norm}, {update});
  pass(OpKind::cast, "muon.narrow", {update}, {x});
  for (int step = 0; step < steps; ++step) {
    const OperandId from = step % 2 == 0 ? x : next, to = step % 2 == 0 ? next : x;
    product("muon.gram", from, from, gram, {.m = m, .n = m, .k = n, .transpose_b = true});
    product("muon.polynomial", gram, gram, b, {.m = m, .n = m, .k = m});
    block.read(product("muon.iterate", b, from, to, {.m = m, .n = n, .k = m}), from);
  }
  pass(OpKind::cast, "muon.widen", {steps % 2 == 0 ? x : next}, {update});
  pass(OpKind::add, "muon.scale", {update}, {update});
  pass(OpKind::add, "muon.scale", {update}, {update});
  pass(OpKind::add, "muon.update", {update, master}, {master});
  if (storage != state) {
    const OperandId working = block.operand("parameters", Role::parameter, storage, matrix);
    pass(OpKind::cast, "muon.parameters", {master}, {working});
  }
  return block.finish();
}

Block adam_block(const BlockInputs& inputs, std::int64_t elements) {
  return inputs.plan.offload.state != Offload::none ? adam_on_host(inputs, elements)
                                                    : adam_on_gpu_block(inputs, elements);
}

Block adam_on_gpu_block(const BlockInputs& inputs, std::int64_t elements) {
  BlockBuilder block{"adam", Pass::step};
  const std::array<std::int64_t, 3> shape{1, 1, elements};
  const DType storage = storage_dtype(inputs.plan.formats.precision);
  const DType state = master_dtype(inputs.plan);
  const DType moments = moment_dtype(inputs.plan);
  const OperandId gradients =
      block.operand("gradients", Role::input, gradient_dtype(inputs.plan, inputs.software), shape);
  const OperandId master = block.operand("master", Role::optimizer, state, shape);
  const OperandId first = block.operand("first_moment", Role::optimizer, moments, shape);
  const OperandId second = block.operand("second_moment", Role::optimizer, moments, shape);
  Operation& op = block.add(OpKind::adam, "adam", {gradients, master, first, second},
                            {master, first, second, gradients});
  op.time_class = TimeClass::optimizer;
  op.dtype = state;
  if (storage != state) {
    const OperandId working = block.operand("parameters", Role::parameter, storage, shape);
    op.writes.push_back(working);  // and the gradients are zeroed in the same pass
    op.bytes += block.at(working).bytes();
  }
  const std::int64_t scales = moment_scales(inputs.plan, elements);
  for (const char* of : {"first_moment.scales", "second_moment.scales"}) {
    if (scales == 0) break;
    const OperandId id = block.operand(of, Role::optimizer, DType::fp32, {1, 1, scales});
    block.read(op, id);
    block.write(op, id);
  }
  return block.finish();
}

}  // namespace orrery::models
