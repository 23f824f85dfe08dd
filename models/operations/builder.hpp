#pragma once
// Builds one block by naming operands and operations in the order they run. Memory traffic is
// what the operands of an operation hold, read or written once, unless it is given.

#include <initializer_list>
#include <string>
#include <string_view>

#include "models/program/block.hpp"

namespace orrery::models {

using Operands = std::initializer_list<OperandId>;

class BlockBuilder {
 public:
  BlockBuilder(std::string name, Pass pass) : pass_{pass} { block_.name = std::move(name); }

  /// A formal operand; the same name again is the same operand.
  OperandId operand(std::string_view name, Role role, DType dtype,
                    std::array<std::int64_t, 3> shape);

  /// An operation with its traffic counted from its operands.
  Operation& add(OpKind kind, std::string_view name, Operands reads, Operands writes);
  /// One more operand of `op`, with its traffic.
  void read(Operation& op, OperandId id) const;
  void write(Operation& op, OperandId id) const;
  /// A GEMM whose FLOPs follow from its shape; `dtype` is the format of the arithmetic.
  Operation& gemm(std::string_view name, OperandId a, OperandId b, OperandId out, GemmShape shape,
                  DType dtype);
  Operation& batched_gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                          GemmShape shape, DType dtype);
  /// Attention's useful FLOPs forward: 4 b h s^2 d, half of it when causal; under a sliding
  /// window w < s the square becomes 2 (s w - w^2 / 2), of which causal attention has half.
  static Flops attention_flops(const AttentionShape& shape);

  const Operand& at(OperandId id) const { return block_.operands[id]; }
  std::optional<OperandId> find(std::string_view operand) const { return block_.find(operand); }
  Block finish();

 private:
  void drop_untouched();

  Block block_;
  Pass pass_;
};

}  // namespace orrery::models
