#pragma once
// BERT's pooler: a dense layer over the first token of each sequence, and whether the second
// sentence follows the first.

#include <string>
#include <string_view>

#include "models/operations/transformer.hpp"

namespace orrery::models {

class PoolerBuilder : protected TransformerBuilder {
 protected:
  using TransformerBuilder::TransformerBuilder;

  /// A dense layer that every rank of the tensor group has whole.
  Linear whole(std::string name, std::int64_t out) const {
    return {.name = std::move(name),
            .in = inputs_.model.hidden,
            .out = out,
            .bias = true,
            .low_precision = false};
  }
  void pool(OperandId in);
  /// Adds to the gradient of the first rows.
  void pool_backward(OperandId d_in);

 private:
  Linear pooler() const { return whole("pooler", inputs_.model.hidden); }
  /// Does the second sentence follow the first?
  Linear relation() const { return whole("relation", 2); }
  OperandId firsts(std::string_view name, Role role, std::int64_t columns);
  void take_firsts(OperandId from, OperandId to);
};

}  // namespace orrery::models
