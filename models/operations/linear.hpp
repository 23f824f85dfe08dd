#pragma once
// A linear layer's three GEMMs and the kernels around them: [T, in] x [in, out] forward, the input
// gradient [T, out] x [out, in] and the weight gradient [in, T] x [T, out], in the plan's format,
// with the quantisation passes of 8 and 4 bits and the stack's gradient accumulation. The layouts
// of operands follow from the sharding of the weight. Column parallel (an axis cuts the outputs):
// the input's rows are needed whole, the output's columns are cut. Row parallel (an axis cuts the
// inputs): the input's columns are cut, the output is a partial sum. Backward is the other way
// round; an axis that does not cut the weight leaves the rows as they are.

#include <optional>
#include <string>
#include <string_view>

#include "models/operations/blocks.hpp"
#include "models/operations/builder.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

struct Linear {
  std::string name;              // "qkv"
  std::int64_t in = 0, out = 0;  // before the cut
  bool bias = false;
  Sharding sharding{};        // of the weight, [in, out]
  bool low_precision = true;  // may run in the plan's 8 or 4 bits; the vocabulary head may not
  bool stored_transposed = false;
  std::string tied_to{};     // name of the tensor that the weight aliases
  std::int64_t experts = 0;  // each has a matrix and rows of its own, [experts, rows, in]; 0: none
  std::optional<LoraTarget> target{};  // which LoRA target it is, if any
  std::vector<MatrixPart> parts{};     // of its columns, in order: parts that may be targets
  bool adapter = false;                // one of an adapter's two matrices
  bool begins_zero = false;            // an adapter's B: zeros at first, so outputs do not change
};

/// A part's matrix as a linear layer whose weight is cut that way.
inline Linear linear_of(const LayerMatrix& matrix, const Sharding& sharding) {
  return {.name = matrix.name,
          .in = matrix.in,
          .out = matrix.out,
          .bias = matrix.bias,
          .sharding = sharding,
          .target = matrix.target,
          .parts = matrix.parts};
}

/// Writes linear layers into a block.
class LinearBuilder {
 public:
  LinearBuilder(BlockBuilder& block, const BlockInputs& inputs) : block_{block}, inputs_{inputs} {}

  void forward(const Linear& layer, OperandId input, OperandId output);
  /// Reads `output_gradient` and `input`, which forward read; writes `input_gradient` and the
  /// gradients of weight and bias.
  void backward(const Linear& layer, OperandId input, OperandId output_gradient,
                OperandId input_gradient);

 private:
  DType storage() const { return storage_dtype(inputs_.plan.formats.precision); }
  DType arithmetic(const Linear& layer) const;
  const Quantisation* quantisation(const Linear& layer) const;
  /// The quantised copy of a tensor that a GEMM in 8 or 4 bits reads, and its block scales.
  struct Quantised {
    OperandId copy = 0;
    std::optional<OperandId> scales{};
  };
  /// Which of the two copies of a block-scaled tensor: `rows` has its blocks along the rows, for
  /// GEMMs that sum over columns; `columns` for those that sum over rows.
  enum class Along : std::uint8_t { rows, columns };
  Quantised copy_of(const Quantisation& how, OperandId source, Role role, Along along);
  bool finds_largest(OperandId source) const;
  void quantise(const Quantisation& how, OperandId source, Role role, bool with_largest);
  Quantised quantised(const Linear& layer, OperandId source, Role role, Along along);
  Quantised kept(const Linear& layer, OperandId input);
  /// Tensors in fp32 next to 4-bit weights (Plan's kbit_upcast): the copy that a GEMM reads, and
  /// the cast of what it has written.
  OperandId narrow_copy(OperandId source, Role role);
  OperandId narrowed(OperandId source, Role role);
  void widen(const Linear& layer, std::string_view suffix, OperandId written);
  bool kept_in_8_bits(const Linear& layer) const;
  bool stored_in_4_bits(const Linear& layer) const;
  OperandId wide_weight(const Linear& layer);
  OperandId weight(const Linear& layer);
  OperandId weight_for_dgrad(const Linear& layer);
  void weight_gradient(const Linear& layer, const Quantised& input,
                       const Quantised& output_gradient);

  /// A GEMM, or a grouped GEMM over the experts, of which `shape` is that of one expert.
  Operation& product(const Linear& layer, std::string_view suffix, OperandId a, OperandId b,
                     OperandId out, GemmShape shape);

  // Adapters (adapter.cpp).
  /// Columns of a layer's output that one adapter adds to: all of them, or a part's.
  struct AdaptedColumns {
    Linear layer;                         // as if these were all of its columns
    std::optional<std::int64_t> first{};  // on one rank; none: all columns
  };
  std::vector<AdaptedColumns> adapted(const Linear& layer) const;
  OperandId adapter_input(const Linear& layer, OperandId input);
  OperandId adapter_rows(const Linear& layer, std::string_view suffix, OperandId like, Role role);
  OperandId adapter_columns(const AdaptedColumns& columns, std::string_view suffix, OperandId like);
  OperandId adapter_copy(const Linear& layer, std::string_view suffix, OperandId like, Role role,
                         DType dtype);
  void adapter_forward(const AdaptedColumns& columns, OperandId input, OperandId output);
  void adapter_backward(const AdaptedColumns& columns, OperandId input, OperandId output_gradient,
                        OperandId input_gradient);

  BlockBuilder& block_;
  const BlockInputs& inputs_;
};

}  // namespace orrery::models
