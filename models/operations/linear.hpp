#pragma once
// A linear layer's three products and what surrounds them: [T, in] x [in, out] forward, the input
// gradient [T, out] x [out, in] and the weight gradient [in, T] x [T, out], in the plan's format
// with the quantisation passes of few bits and the stack's way to accumulate. What the products
// need and make follows from how the weight is cut: an axis that cuts its outputs wants the input's
// rows whole and cuts the output's columns; an axis that cuts its inputs reads cut columns and
// leaves a partial sum; backward the other way round. An axis that does not cut it leaves rows as
// they are.

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
  std::int64_t in = 0, out = 0;  // uncut
  bool bias = false;
  Sharding sharding{};        // of the weight, [in, out]
  bool low_precision = true;  // where the plan says so; the vocabulary head stays in 16 bits
  bool stored_transposed = false;
  std::string tied_to{};     // the tensor that the weight is another name of
  std::int64_t experts = 0;  // each with a matrix and rows of its own, [experts, rows, in]; 0: none
  std::optional<LoraTarget> target{};  // which of an adapter's targets it is
  bool adapter = false;                // one of an adapter's two matrices
  bool begins_zero = false;            // an adapter's B, which so changes nothing at first
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
  const Quantisation* quantisation(const Linear& layer) const;
  /// What a product in few bits reads of a tensor, and the scales that it reads with it.
  struct Quantised {
    OperandId copy = 0;
    std::optional<OperandId> scales{};
  };
  /// Of the two copies: what sums over columns reads the one by rows.
  enum class Along : std::uint8_t { rows, columns };
  Quantised copy_of(const Quantisation& how, OperandId source, Role role, Along along);
  void quantise(const Quantisation& how, OperandId source, Role role);
  Quantised quantised(const Linear& layer, OperandId source, Role role, Along along);
  Quantised kept(const Linear& layer, OperandId input);
  bool kept_in_8_bits(const Linear& layer) const;
  OperandId weight(const Linear& layer);
  OperandId weight_for_dgrad(const Linear& layer);
  void weight_gradient(const Linear& layer, const Quantised& input,
                       const Quantised& output_gradient);

  /// One product, or one for each expert. `shape` is that of one expert's.
  Operation& product(const Linear& layer, std::string_view suffix, OperandId a, OperandId b,
                     OperandId out, GemmShape shape);

  // An adapter (adapter.cpp).
  bool adapts(const Linear& layer) const;
  OperandId adapter_input(const Linear& layer, OperandId input);
  OperandId adapter_rows(const Linear& layer, std::string_view suffix, OperandId like, Role role);
  void adapter_forward(const Linear& layer, OperandId input, OperandId output);
  void adapter_backward(const Linear& layer, OperandId input, OperandId output_gradient,
                        OperandId input_gradient);

  BlockBuilder& block_;
  const BlockInputs& inputs_;
};

}  // namespace orrery::models
