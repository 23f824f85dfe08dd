#pragma once
// What the builders of layers, embedding and head have in common: operands, by names that are the
// same in forward and backward, and norms.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/layouts.hpp"
#include "models/operations/linear.hpp"

namespace orrery::models {

class TransformerBuilder {
 protected:
  TransformerBuilder(const BlockInputs& inputs, std::string name, Pass pass);

  std::int64_t tokens() const { return tokens_of(inputs_.plan); }  // T

  /// [T, h], in the layout between layers.
  OperandId rows(std::string_view name, Role role, DType dtype);
  OperandId rows(std::string_view name, Role role) { return rows(name, role, storage_); }
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
  /// [h]: a bias (begins as zeros), or a norm's weight (begins as ones).
  ModelTensor bias_of(std::string name) const {
    return {.name = std::move(name),
            .uncut = {1, 1, inputs_.model.hidden},
            .initial = {Initial::Kind::zeros}};
  }
  ModelTensor scale_of(std::string name) const {
    return {.name = std::move(name),
            .uncut = {1, 1, inputs_.model.hidden},
            .initial = {Initial::Kind::ones}};
  }

  void norm(const std::string& name, OperandId in, OperandId out);
  /// out = norm'(gradient_out) [+ residual], where `residual` is the gradient of the residual
  /// branch around the norm.
  void norm_backward(const std::string& name, OperandId gradient_out, OperandId saved_in,
                     std::optional<OperandId> residual, OperandId out);

  const BlockInputs& inputs_;
  DType storage_, gradient_;
  BlockBuilder block_;
  LinearBuilder linear_;
};

}  // namespace orrery::models
