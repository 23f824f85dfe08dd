#pragma once
// A linear layer's three products and what surrounds them: [T, in] x [in, out] forward, the input
// gradient [T, out] x [out, in] and the weight gradient [in, T] x [T, out], in the plan's format
// with fp8's quantisation passes and the stack's way to accumulate.

#include <string>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"

namespace orrery::models {

/// How a linear layer is cut over the tensor axis.
enum class LinearCut : std::uint8_t {
  column,  // outputs cut: input needs all rows, input gradient is a partial sum
  row,     // inputs cut: output is a partial sum, output gradient needs all rows
  whole,   // not cut: every rank has all of it, for the rows that it holds
};

struct Linear {
  std::string name;              // "qkv"
  std::int64_t in = 0, out = 0;  // of this rank
  bool bias = false;
  LinearCut cut = LinearCut::column;
  std::int64_t rows = 0;      // of the product; 0: all tokens
  bool low_precision = true;  // fp8 where the plan says so; the vocabulary head stays in 16 bits
};

/// Writes linear layers into a block.
class LinearBuilder {
 public:
  LinearBuilder(BlockBuilder& block, const BlockInputs& inputs, const Shares& shares)
      : block_{block}, inputs_{inputs}, shares_{shares} {}

  void forward(const Linear& layer, OperandId input, OperandId output);
  /// `output_gradient` -> `input_gradient` and the weight's gradient; `input` is what forward read.
  void backward(const Linear& layer, OperandId input, OperandId output_gradient,
                OperandId input_gradient);

 private:
  DType arithmetic(const Linear& layer) const;
  std::int64_t rows(const Linear& layer) const;
  OperandId quantised(const Linear& layer, OperandId source, Role role);
  OperandId kept(const Linear& layer, OperandId input);
  void weight_gradient(const Linear& layer, OperandId input, OperandId output_gradient);

  BlockBuilder& block_;
  const BlockInputs& inputs_;
  const Shares& shares_;
};

}  // namespace orrery::models
