#pragma once
// An MLP, plain or gated: a layer's channel, or the shared experts of one.

#include <string>

#include "models/operations/parts/part.hpp"

namespace orrery::models {

class MlpBuilder : public ChannelBuilder, private TransformerBuilder {
 public:
  /// `prefix` of its names: "" for the layer's own.
  MlpBuilder(BlockScope& scope, const MlpPart& mlp, std::string prefix = "")
      : TransformerBuilder{scope}, mlp_{mlp}, prefix_{std::move(prefix)} {}

  void forward(OperandId in, OperandId out) override;
  void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) override;
  bool has_bias() const override { return mlp_.bias; }

 private:
  Linear up() const;
  Linear down() const;
  OperandId up_columns(std::string_view name, Role role) {  // gate and up, or up
    return of_tile(name, role, up().out, mlp_layout(mlp_));
  }
  OperandId inner_columns(std::string_view name, Role role) {
    return of_tile(name, role, mlp_.width, by_columns());
  }
  OperandId of_tile(std::string_view name, Role role, std::int64_t columns, const Sharding& layout);
  std::int64_t tiles() const;
  /// Does backward keep the activated gate? Tiles keep nothing.
  bool saves_gate() const { return saves_unfused() && mlp_.gated && tiles() == 1; }
  void compute(OperandId in, OperandId out);
  /// whole  operands with a row for every token; all others are tiles, or weights
  void count_tiles(std::size_t first, Operands whole);

  /// Says which activation an operation computes.
  void act(Operation& op) const {
    op.mutable_activation() = mlp_.activation;
    if (mlp_.clamped) op.mutable_clamp() = mlp_.limit;
  }

  MlpPart mlp_;
  std::string prefix_;
};

}  // namespace orrery::models
