#pragma once
// Context parallelism: attention over a sequence that several ranks share.

#include <vector>

#include "models/operations/parts/attention_operands.hpp"

namespace orrery::models {

class ContextAttention : private AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;

  void forward(OperandId qkv, OperandId out);
  void backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);

 private:
  OperandId keys_and_values(const std::string& name, bool whole);
  AttentionShape rectangle(std::int64_t keys) const;
  Operation& partial_forward(const std::string& name, const AttentionShape& shape, OperandId qkv,
                             OperandId keys, OperandId out);
  Operation& partial_backward(const std::string& name, const AttentionShape& shape, OperandId qkv,
                              OperandId keys, OperandId out, OperandId gradient_out,
                              OperandId gradient_in);
  /// Attention shapes of the slowest rank of an all-gather.
  std::vector<AttentionShape> gathered_parts() const;
  static SequencePart gathered_part(std::size_t i, std::size_t parts);
  Operation& pass_keys(const std::string& name, OperandId from, OperandId to, std::int64_t ahead);
  void merge(const std::string& number, OperandId out, OperandId part);
  void gathered_forward(OperandId qkv, OperandId out);
  void gathered_backward(OperandId qkv, OperandId out, OperandId gradient_out,
                         OperandId gradient_in);
  void ring_forward(OperandId qkv, OperandId out);
  void ring_backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);
};

}  // namespace orrery::models
