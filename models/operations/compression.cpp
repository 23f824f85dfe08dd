// What a bucket of gradients goes through before and after its collective.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"

namespace orrery::models {

namespace {

/// Writes one direction; both name the same operands.
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
  Block finish() { return block_.finish(); }

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
  // Cleared whole; then each value's place is read and written.
  sum.bytes += Bytes{2 * ranks * back.kept() * bits(back.gradient()) / 8};
  return {there.finish(), back.finish()};
}

}  // namespace orrery::models
