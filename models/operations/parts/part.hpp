#pragma once
// A layer's parts as it builds them: one that mixes tokens, between a norm and a residual addition,
// and one that works on each token. Forward and backward of a part are two builders of one class.

#include <memory>

#include "models/operations/transformer.hpp"

namespace orrery::models {

class MixerBuilder {
 public:
  virtual ~MixerBuilder() = default;

  /// Everything before the projection to [T, h].
  virtual void mix(OperandId in) = 0;
  virtual void project(OperandId out) = 0;
  virtual void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) = 0;
  /// Does the residual addition add the projection's bias?
  virtual bool has_bias() const = 0;
};

class ChannelBuilder {
 public:
  virtual ~ChannelBuilder() = default;

  virtual void forward(OperandId in, OperandId out) = 0;
  virtual void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) = 0;
  virtual bool has_bias() const = 0;
};

/// The builders of the parts that there are. A layer chooses among them (layer.cpp).
std::unique_ptr<MixerBuilder> attention_builder(BlockScope& scope, const AttentionPart& attention);
/// `begins_sum`: in backward its gradient of the encoder's output is the first of their sum.
std::unique_ptr<MixerBuilder> cross_builder(BlockScope& scope, const CrossAttentionPart& cross,
                                            bool begins_sum);
std::unique_ptr<MixerBuilder> scan_builder(BlockScope& scope, const Mamba2Part& mamba);
std::unique_ptr<MixerBuilder> scan_builder(BlockScope& scope, const DeltaPart& delta);
std::unique_ptr<ChannelBuilder> experts_builder(BlockScope& scope, const ExpertsPart& experts);

}  // namespace orrery::models
