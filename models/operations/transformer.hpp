#pragma once
// What the builders of layers, their parts, embedding and head have in common: operands, by names
// that are the same in forward and backward, and norms.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/layouts.hpp"
#include "models/operations/linear.hpp"

namespace orrery::models {

/// A block that is being written, by one builder or by those of several parts.
struct BlockScope {
  BlockScope(const BlockInputs& of, std::string name, Pass pass);

  const BlockInputs& inputs;
  DType storage, gradients;
  BlockBuilder block;
  LinearBuilder linear;
};

class TransformerBuilder {
 protected:
  explicit TransformerBuilder(BlockScope& scope)
      : inputs_{scope.inputs},
        storage_{scope.storage},
        gradient_{scope.gradients},
        block_{scope.block},
        linear_{scope.linear} {}

  std::int64_t tokens() const { return tokens_of(inputs_.plan); }  // T
  std::int64_t hidden() const { return inputs_.model.hidden; }     // h

  /// [T, h], in the layout between layers.
  OperandId rows(std::string_view name, Role role, DType dtype);
  OperandId rows(std::string_view name, Role role) { return rows(name, role, storage_); }
  /// [T, h] of sequences of so many tokens, in the same layout, which blocks pass on by this name.
  OperandId carried_rows(std::string_view name, std::int64_t seq_len);
  /// [T, e], as wide as a row of the embedding table.
  OperandId narrow_rows(std::string_view name, Role role);
  /// [T, columns], cut by columns unless `layout` says otherwise.
  OperandId features(std::string_view name, Role role, std::int64_t columns,
                     const Sharding& layout = by_columns());

  OperandId parameter(const ModelTensor& tensor) { return block_.parameter(tensor, storage_); }
  /// Gradient of a tensor that every rank holds whole (a norm's weight, a bias), computed from the
  /// output gradient `of`: along the axes that cut `of`, ranks hold partial sums.
  OperandId gradient(const ModelTensor& tensor, OperandId of) {
    return block_.gradient(tensor, gradient_, block_.at(of).sharding.axes());
  }
  /// How a norm's weight begins: as ones, less what is added to it.
  Initial initial_scale() const {
    return {inputs_.model.norms.offset == 0 ? Initial::Kind::ones : Initial::Kind::zeros};
  }
  /// What all norms have in common.
  void set_norm(Operation& op) const {
    op.mutable_norm() = inputs_.model.norms.kind;
    op.mutable_epsilon() = inputs_.model.norms.epsilon;
    op.mutable_offset() = inputs_.model.norms.offset;
  }
  /// [h]: a bias (begins as zeros), or a norm's weight.
  ModelTensor bias_of(std::string name) const {
    return {.name = std::move(name), .uncut = {1, 1, hidden()}, .initial = {Initial::Kind::zeros}};
  }
  ModelTensor scale_of(std::string name) const {
    return {.name = std::move(name), .uncut = {1, 1, hidden()}, .initial = initial_scale()};
  }

  /// Is an RMSNorm or a gated activation a chain of an eager framework's operations?
  bool saves_unfused() const { return inputs_.software.memory.saves_unfused; }
  bool unfused_norms() const {
    // A frozen norm's input in fp32 is its own copy in fp32.
    const bool copies = !trains_adapters(inputs_.plan) || storage_ != DType::fp32;
    return saves_unfused() && copies && inputs_.model.norms.kind == Norm::rms_norm;
  }
  /// An RMSNorm's input in fp32 and, where its weight is trained, the normalised rows, less its
  /// input in storage, which is not saved then.
  DType unfused_dtype() const { return trains_adapters(inputs_.plan) ? storage_ : DType::fp32; }
  /// Makes backward keep what a chain of operations saves besides the operands of the one operation
  /// that stands for it. Their traffic is the stack's memory_derate, so `op` keeps its own.
  void save_besides(Operation& op, OperandId saved) {
    const Bytes traffic = op.bytes;
    block_.write(op, saved);
    op.bytes = traffic;
  }
  void read_besides(Operation& op, OperandId saved) {
    const Bytes traffic = op.bytes;
    block_.read(op, saved);
    op.bytes = traffic;
  }
  /// What an unfused RMSNorm saves of `in` besides it.
  OperandId unfused_norm(const std::string& name, OperandId in);
  void norm(const std::string& name, OperandId in, OperandId out);
  /// out = norm'(gradient_out) [+ residual], where `residual` is the gradient of the residual
  /// branch around the norm.
  void norm_backward(const std::string& name, OperandId gradient_out, OperandId saved_in,
                     std::optional<OperandId> residual, OperandId out);

  /// The 8-bit copy of an operand.
  OperandId in_8_bits(OperandId of, Role role);
  /// An activation's input that is kept in 8 bits is cast in forward, and made again from them in
  /// backward.
  /// Source  Megatron-Core, activation_func_fp8_input_store of fusions/fused_bias_swiglu.py: a cast
  ///         of its own in forward, and one back in backward
  Role role_of_inner() const;
  void keep_inner(OperandId inner);
  void restore_inner(OperandId inner);

  const BlockInputs& inputs_;
  DType storage_, gradient_;
  BlockBuilder& block_;
  LinearBuilder& linear_;
};

}  // namespace orrery::models
