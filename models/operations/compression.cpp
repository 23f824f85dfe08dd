// Compression of a bucket of gradients before its collective, and decompression after it.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"
#include "models/plan/compression.hpp"
#include "models/plan/precision_formats.hpp"
#include "sim/errors.hpp"

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
    return line("residual", Role::optimizer, state_dtype(inputs_.plan.formats.precision),
                elements_);
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
  DType state() const { return state_dtype(inputs_.plan.formats.precision); }

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

CompressionBlocks narrowing_blocks(const BlockInputs& inputs, std::int64_t elements) {
  Compressor compress{inputs, elements, "narrow"}, decompress{inputs, elements, "widen"};
  compress.add(OpKind::cast, "narrow", {compress.gradients()}, {compress.narrow(Role::output)});
  decompress.add(OpKind::cast, "widen", {decompress.narrow(Role::input)}, {decompress.gradients()});
  return {compress.finish(), {}, decompress.finish()};
}

CompressionBlocks top_k_blocks(const BlockInputs& inputs, std::int64_t elements) {
  Compressor compress{inputs, elements, "top_k"}, decompress{inputs, elements, "scatter_add"};
  const OperandId residual = compress.residual();
  compress.add(OpKind::top_k, "top_k", {compress.gradients(), residual},
               {compress.values("values", Role::output, 1),
                compress.indices("indices", Role::output, 1), residual});
  const std::int64_t ranks = inputs.plan.data;
  Operation& sum = decompress.add(OpKind::scatter_add, "scatter_add",
                                  {decompress.values("values.all", Role::input, ranks),
                                   decompress.indices("indices.all", Role::input, ranks)},
                                  {decompress.gradients()});
  // The whole bucket is cleared; then the element of each received value is read and written.
  sum.bytes += Bytes{2 * ranks * decompress.kept() * bits(decompress.gradient()) / 8};
  return {compress.finish(), {}, decompress.finish()};
}

/// Modified Gram-Schmidt, column by column: a column is read twice and written once for its norm,
/// and again for each column before it.
///   bytes = 3 rows rank (rank + 1) / 2 x width
Bytes gram_schmidt_bytes(const LowRankShape& of, DType type) {
  return Bytes{3 * of.rows * of.rank * (of.rank + 1) / 2 * bits(type) / 8};
}

CompressionBlocks byte_blocks(const BlockInputs& inputs, std::int64_t elements) {
  const std::int64_t ranks = inputs.plan.data;
  const std::int64_t share = byte_share(inputs.plan, elements).elements;
  Compressor compress{inputs, elements, "byte_grad"},
      second_step{inputs, elements, "byte_grad.sum"},
      decompress{inputs, elements, "byte_grad.widen"};
  const OperandId gradients = compress.gradients();
  compress.add(OpKind::quantise, "range", {gradients},
               {compress.matrix("range", Role::temporary, ranks, 2)});
  compress.add(OpKind::quantise, "bytes", {gradients},
               {compress.shares("bytes", Role::output, ranks)});
  const OperandId sum = second_step.matrix("sum", Role::temporary, 1, share);
  second_step.add(OpKind::quantise, "sum", {second_step.shares("bytes.all", Role::input, ranks)},
                  {sum});
  second_step.add(OpKind::quantise, "range", {sum},
                  {second_step.matrix("range", Role::temporary, 1, 2)});
  second_step.add(OpKind::quantise, "sum.bytes", {sum},
                  {second_step.shares("sum.bytes", Role::output, 1)});
  decompress.add(OpKind::quantise, "widen", {decompress.shares("sums.bytes", Role::input, ranks)},
                 {decompress.gradients()});
  return {compress.finish(), second_step.finish(), decompress.finish()};
}

CompressionBlocks low_rank_blocks(const BlockInputs& inputs, std::int64_t elements) {
  const LowRankShape of = low_rank_shape(inputs.plan, elements);
  const auto [m, n, r] = of;
  Compressor compress{inputs, elements, "power_sgd"},
      second_step{inputs, elements, "power_sgd.second"},
      decompress{inputs, elements, "power_sgd.expand"};
  const OperandId residual = compress.matrix("residual", Role::optimizer, m, n);
  compress.add(OpKind::accumulate, "feedback", {compress.gradients(), residual}, {residual}).dtype =
      compress.state();
  compress.product("p", {residual, compress.matrix("q", Role::optimizer, n, r)},
                   compress.matrix("p", Role::output, m, r), {.m = m, .n = r, .k = n});

  const OperandId p = second_step.matrix("p", Role::input, m, r);
  const OperandId left = second_step.matrix("residual", Role::optimizer, m, n);
  const OperandId q = second_step.matrix("q", Role::output, n, r);
  second_step.add(OpKind::orthogonalise, "orthogonalise", {p}, {p}).bytes =
      gram_schmidt_bytes(of, second_step.state());
  second_step.product("q", {left, p}, q, {.m = n, .n = r, .k = m, .transpose_a = true});
  second_step.product(
      "residual", {p, q}, left,
      {.m = m, .n = n, .k = r, .transpose_b = true, .accumulate = true, .subtract = true});

  const OperandId sum = decompress.matrix("matrix", Role::temporary, m, n);
  decompress.product(
      "expand",
      {decompress.matrix("p", Role::input, m, r), decompress.matrix("q", Role::input, n, r)}, sum,
      {.m = m, .n = n, .k = r, .transpose_b = true});
  decompress.add(OpKind::cast, "cast", {sum}, {decompress.gradients()});
  return {compress.finish("q"), second_step.finish(), decompress.finish()};
}

}  // namespace

CompressionBlocks compression_blocks(const BlockInputs& inputs, std::int64_t elements) {
  switch (inputs.plan.compression.kind) {
    case Compression::fp16:
      return narrowing_blocks(inputs, elements);
    case Compression::top_k:
      return top_k_blocks(inputs, elements);
    case Compression::power_sgd:
      return low_rank_blocks(inputs, elements);
    case Compression::int8:
      return byte_blocks(inputs, elements);
    case Compression::none:
      break;
  }
  throw ContractError{"a plan without compression has no blocks for it"};
}

}  // namespace orrery::models
