#pragma once
// Sparse attention over latents: an indexer scores every earlier token, the best are selected, and
// the core attends to these alone, in the space of latents. While a sequence is so short that the
// core over all of it has fewer FLOPs (selects_faster), that one runs, masked by the selection.
// Tensor parallelism cuts the core by heads; the indexer's scores are those of all tokens on every
// rank. Its training compares them with the attention summed over heads: backward scores again, and
// ranks that share heads sum that target. Nothing passes a gradient from the indexer to its input.
// Source  DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1; inference/model.py

#include "models/operations/parts/attention_operands.hpp"

namespace orrery::models {

class SparseSelection : private AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;

  /// Scores and selects; `in` is the layer's normalised input.
  void forward(OperandId in);
  void backward(OperandId in);
  /// Turns an attention over the whole sequence into one over the selected tokens, where that is
  /// faster.
  /// factor  of its FLOPs over forward's
  void narrow(Operation& core, double factor);

 private:
  bool own() const { return attention_.indexer && !attention_.indexer->shared; }
  std::int64_t length() const { return inputs_.plan.batch.seq_len; }
  OperandId query_source(OperandId in);
  OperandId projected(const LayerMatrix& matrix, Role role);
  OperandId chosen();
  ModelTensor key_norm() const;
  Operation& score(std::string_view name, double factor, OperandId out);
};

}  // namespace orrery::models
