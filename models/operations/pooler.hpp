#pragma once
// BERT's pooler: a dense layer over the first token of each sequence, and the next-sentence
// classifier on its output.

#include <string>
#include <string_view>

#include "models/operations/transformer.hpp"

namespace orrery::models {

class PoolerBuilder : protected TransformerBuilder {
 protected:
  using TransformerBuilder::TransformerBuilder;

  /// A dense layer that is whole on every rank of the tensor group.
  Linear whole(std::string name, std::int64_t out) const {
    return {.name = std::move(name),
            .in = inputs_.model.hidden,
            .out = out,
            .bias = true,
            .low_precision = false};
  }
  void pool(OperandId in);
  /// Adds the pooler's gradient to `d_in` at the first token of each sequence.
  void pool_backward(OperandId d_in);

 private:
  Linear pooler() const { return whole("pooler", inputs_.model.hidden); }
  /// The next-sentence classifier: does the second sentence follow the first?
  Linear relation() const { return whole("relation", 2); }
  OperandId firsts(std::string_view name, Role role, std::int64_t columns);
  void take_firsts(OperandId from, OperandId to);
};

}  // namespace orrery::models
