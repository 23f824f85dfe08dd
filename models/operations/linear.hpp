#pragma once
// A linear layer's three products and what surrounds them: [T, in] x [in, out] forward, the input
// gradient [T, out] x [out, in] and the weight gradient [in, T] x [T, out], in the plan's format
// with fp8's quantisation passes and the stack's way to accumulate. What the products need and make
// follows from how the weight is cut: an axis that cuts its outputs wants the input's rows whole
// and cuts the output's columns; an axis that cuts its inputs reads cut columns and leaves a
// partial sum; backward the other way round. An axis that does not cut it leaves rows as they are.

#include <string>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"

namespace orrery::models {

struct Linear {
  std::string name;              // "qkv"
  std::int64_t in = 0, out = 0;  // uncut
  bool bias = false;
  Sharding sharding{};        // of the weight, [in, out]
  bool low_precision = true;  // fp8 where the plan says so; the vocabulary head stays in 16 bits
  bool stored_transposed = false;
  std::string tied_to{};     // the tensor that the weight is another name of
  std::int64_t experts = 0;  // each with a matrix and rows of its own, [experts, rows, in]; 0: none
};

/// Writes linear layers into a block.
class LinearBuilder {
 public:
  LinearBuilder(BlockBuilder& block, const BlockInputs& inputs) : block_{block}, inputs_{inputs} {}

  void forward(const Linear& layer, OperandId input, OperandId output);
  /// `output_gradient` -> `input_gradient` and the weight's gradient; `input` is what forward read.
  void backward(const Linear& layer, OperandId input, OperandId output_gradient,
                OperandId input_gradient);

 private:
  DType storage() const { return storage_dtype(inputs_.plan.precision); }
  DType arithmetic(const Linear& layer) const;
  OperandId quantised(const Linear& layer, OperandId source, Role role);
  OperandId kept(const Linear& layer, OperandId input);
  void weight_gradient(const Linear& layer, OperandId input, OperandId output_gradient);
  /// One product, or one for each expert. `shape` is that of one expert's.
  Operation& product(const Linear& layer, std::string_view suffix, OperandId a, OperandId b,
                     OperandId out, GemmShape shape);

  BlockBuilder& block_;
  const BlockInputs& inputs_;
};

}  // namespace orrery::models
