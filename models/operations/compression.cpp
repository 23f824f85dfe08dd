// Compression of a bucket of gradients before its collective, and decompression after it.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"
#include "models/plan/compression.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

namespace {

/// Writes one block of a compression; the blocks share operands by name.
class Compressor {
 public:
  Compressor(const BlockInputs& inputs, std::int64_t elements, std::string name)
      : inputs_{inputs}, elements_{elements}, block_{std::move(name), Pass::step} {}

  OperandId gradients() { return line("gradients", Role::gradient, gradient(), elements_); }
  OperandId narrow(Role role) { return line("narrow", role, DType::fp16, elements_); }
  OperandId residual() {
    return line("residual", Role::optimizer, state_dtype(inputs_.plan.precision), elements_);
  }
  OperandId values(std::string_view name, Role role, std::int64_t ranks) {
    return block_.operand(name, role, gradient(), {1, ranks, kept()});
  }
  OperandId indices(std::string_view name, Role role, std::int64_t ranks) {
    return block_.operand(name, role, DType::int32, {1, ranks, kept()});
  }
  std::int64_t kept() const { return kept_by_top_k(inputs_.plan, elements_); }
  DType gradient() const { return gradient_dtype(inputs_.plan, inputs_.software); }

  Operation& add(OpKind kind, std::string_view name, Operands reads, Operands writes) {
    Operation& op = block_.add(kind, name, reads, writes);
    op.dtype = gradient();
    return op;
  }
  /// A matrix in the format of optimizer state: a PowerSGD factor, the bucket as a matrix, a range.
  OperandId matrix(std::string_view name, Role role, std::int64_t rows, std::int64_t columns) {
    return block_.operand(name, role, state(), {1, rows, columns});
  }
  void product(std::string_view name, Operands reads, OperandId out, const GemmShape& shape) {
    block_.gemm(name, *reads.begin(), *(reads.begin() + 1), out, shape, state());
  }
  /// `count` shares of the bucket in 8 bits, each with its range.
  OperandId shares(std::string_view name, Role role, std::int64_t count) {
    return block_.operand(name, role, DType::uint8,
                          {1, count, byte_share(inputs_.plan, elements_).bytes()});
  }
  DType state() const { return state_dtype(inputs_.plan.precision); }

  /// States the optimizer state before the first step: zeros, except random numbers for `drawn`.
  Block finish(std::string_view drawn = {}) {
    Block block = block_.finish();
    for (Operand& each : block.operands) {
      if (each.role != Role::optimizer) continue;
      each.initial = {each.name == drawn ? Initial::Kind::normal : Initial::Kind::zeros, 1};
    }
    return block;
  }

 private:
  OperandId line(std::string_view name, Role role, DType dtype, std::int64_t count) {
    return block_.operand(name, role, dtype, {1, 1, count});
  }

  const BlockInputs& inputs_;
  std::int64_t elements_;
  BlockBuilder block_;
};

}  // namespace

BlockPair narrowing_blocks(const BlockInputs& inputs, std::int64_t elements) {
  Compressor there{inputs, elements, "narrow"}, back{inputs, elements, "widen"};
  there.add(OpKind::cast, "narrow", {there.gradients()}, {there.narrow(Role::output)});
  back.add(OpKind::cast, "widen", {back.narrow(Role::input)}, {back.gradients()});
  return {there.finish(), back.finish()};
}

BlockPair top_k_blocks(const BlockInputs& inputs, std::int64_t elements) {
  Compressor there{inputs, elements, "top_k"}, back{inputs, elements, "scatter_add"};
  const OperandId residual = there.residual();
  there.add(OpKind::top_k, "top_k", {there.gradients(), residual},
            {there.values("values", Role::output, 1), there.indices("indices", Role::output, 1),
             residual});
  const std::int64_t ranks = inputs.plan.data;
  Operation& sum = back.add(OpKind::scatter_add, "scatter_add",
                            {back.values("values.all", Role::input, ranks),
                             back.indices("indices.all", Role::input, ranks)},
                            {back.gradients()});
  // The whole bucket is cleared; then the element of each received value is read and written.
  sum.bytes += Bytes{2 * ranks * back.kept() * bits(back.gradient()) / 8};
  return {there.finish(), back.finish()};
}

namespace {

/// Modified Gram-Schmidt, column by column: a column is read twice and written once for its norm,
/// and again for each column before it.
///   bytes = 3 rows rank (rank + 1) / 2 x width
Bytes gram_schmidt_bytes(const LowRankShape& of, DType type) {
  return Bytes{3 * of.rows * of.rank * (of.rank + 1) / 2 * bits(type) / 8};
}

}  // namespace

ByteBlocks byte_blocks(const BlockInputs& inputs, std::int64_t elements) {
  const std::int64_t ranks = inputs.plan.data;
  const std::int64_t share = byte_share(inputs.plan, elements).elements;
  Compressor first{inputs, elements, "byte_grad"}, second{inputs, elements, "byte_grad.sum"},
      back{inputs, elements, "byte_grad.widen"};
  const OperandId gradients = first.gradients();
  first.add(OpKind::quantise, "range", {gradients},
            {first.matrix("range", Role::temporary, ranks, 2)});
  first.add(OpKind::quantise, "bytes", {gradients}, {first.shares("bytes", Role::output, ranks)});
  const OperandId sum = second.matrix("sum", Role::temporary, 1, share);
  second.add(OpKind::quantise, "sum", {second.shares("bytes.all", Role::input, ranks)}, {sum});
  second.add(OpKind::quantise, "range", {sum}, {second.matrix("range", Role::temporary, 1, 2)});
  second.add(OpKind::quantise, "sum.bytes", {sum}, {second.shares("sum.bytes", Role::output, 1)});
  back.add(OpKind::quantise, "widen", {back.shares("sums.bytes", Role::input, ranks)},
           {back.gradients()});
  return {first.finish(), second.finish(), back.finish()};
}

LowRankBlocks low_rank_blocks(const BlockInputs& inputs, std::int64_t elements) {
  const LowRankShape of = low_rank_shape(inputs.plan, elements);
  const auto [m, n, r] = of;
  Compressor first{inputs, elements, "power_sgd"}, second{inputs, elements, "power_sgd.second"},
      back{inputs, elements, "power_sgd.expand"};
  const OperandId residual = first.matrix("residual", Role::optimizer, m, n);
  first.add(OpKind::accumulate, "feedback", {first.gradients(), residual}, {residual}).dtype =
      first.state();
  first.product("p", {residual, first.matrix("q", Role::optimizer, n, r)},
                first.matrix("p", Role::output, m, r), {.m = m, .n = r, .k = n});

  const OperandId p = second.matrix("p", Role::input, m, r);
  const OperandId left = second.matrix("residual", Role::optimizer, m, n);
  const OperandId q = second.matrix("q", Role::output, n, r);
  second.add(OpKind::orthogonalise, "orthogonalise", {p}, {p}).bytes =
      gram_schmidt_bytes(of, second.state());
  second.product("q", {left, p}, q, {.m = n, .n = r, .k = m, .transpose_a = true});
  second.product(
      "residual", {p, q}, left,
      {.m = m, .n = n, .k = r, .transpose_b = true, .accumulate = true, .subtract = true});

  const OperandId sum = back.matrix("matrix", Role::temporary, m, n);
  back.product("expand", {back.matrix("p", Role::input, m, r), back.matrix("q", Role::input, n, r)},
               sum, {.m = m, .n = n, .k = r, .transpose_b = true});
  back.add(OpKind::cast, "cast", {sum}, {back.gradients()});
  return {first.finish("q"), second.finish(), back.finish()};
}

}  // namespace orrery::models
