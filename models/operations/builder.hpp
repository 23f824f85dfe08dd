#pragma once
// Builds one block by naming operands and operations in the order they run. Memory traffic is
// what the operands of an operation hold, read or written once, unless it is given.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "models/program/block.hpp"

namespace orrery::models {

using Operands = std::initializer_list<OperandId>;

/// A tensor of the model, of which a block holds parameter and gradient.
struct ModelTensor {
  std::string name;  // in the block: "qkv.weight"
  Shape uncut{1, 1, 1};
  Sharding sharding{};
  Initial initial{};
  std::string tied_to{};  // the tensor that it is another name of
  bool transposed = false;
  MeshView view = MeshView::dense;  // of the mesh, whose replicas hold it
  bool adapter = false;
  bool frozen = false;  // training leaves it as it is, whatever else it trains
};

class BlockBuilder {
 public:
  BlockBuilder(std::string name, Pass pass, const Mesh& mesh = {}) : pass_{pass}, mesh_{mesh} {
    block_.name = std::move(name);
  }

  /// A formal operand, by its uncut shape; the same name again is the same operand.
  OperandId operand(std::string_view name, Role role, DType dtype, const Shape& uncut,
                    const Sharding& sharding = {});
  OperandId parameter(const ModelTensor& tensor, DType dtype);
  /// What accumulates its gradient, of which ranks along `partial` hold a partial sum each.
  OperandId gradient(const ModelTensor& tensor, DType dtype, AxisSet partial = {});

  /// An operation with its traffic counted from its operands.
  Operation& add(OpKind kind, std::string_view name, Operands reads, Operands writes);
  /// One more operand of `op`, with its traffic.
  void read(Operation& op, OperandId id) const;
  void write(Operation& op, OperandId id) const;
  /// The operation needs an operand in this layout, or makes it so: its traffic is that layout's,
  /// where it reads or writes it.
  void need(Operation& op, OperandId id, const Sharding& sharding) const;
  void make(Operation& op, OperandId id, const Sharding& sharding) const;
  /// A GEMM whose FLOPs follow from its shape; `dtype` is the format of the arithmetic.
  Operation& gemm(std::string_view name, OperandId a, OperandId b, OperandId out, GemmShape shape,
                  DType dtype);
  /// A product of each matrix of a with its own of b; `shape` is that of all rows together.
  Operation& grouped_gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                          GemmShape shape, DType dtype);
  /// A collective inside the block, of the group with that role; what it moves is the larger of its
  /// operands, where it is not given.
  Operation& collective(Collective kind, std::string_view name, CommunicatorRole role,
                        OperandId from, OperandId to);
  Operation& batched_gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                          GemmShape shape, DType dtype);
  /// Attention's useful FLOPs forward: 2 b h s^2 (d + v) with v the width of a value, half of it
  /// when causal; under a sliding window w < s the square becomes 2 (s w - w^2 / 2), of which
  /// causal attention has half. Of a part of the sequence: every token attends to all `keys`.
  static Flops attention_flops(const AttentionShape& shape);

  const Operand& at(OperandId id) const { return block_.operands[id]; }
  /// The share of its slots that is expected to hold a row.
  void fill(OperandId id, double share) { block_.operands[id].filled = share; }
  /// Operations so far; those from there on.
  std::size_t size() const { return block_.operations.size(); }
  std::span<Operation> since(std::size_t first) {
    return std::span{block_.operations}.subspan(first);
  }
  /// What a rank holds of an operand in that layout.
  Shape shape(OperandId id, const Sharding& sharding) const {
    return local_shape(at(id).uncut, sharding, mesh_);
  }
  const Mesh& mesh() const { return mesh_; }
  std::optional<OperandId> find(std::string_view operand) const { return block_.find(operand); }
  Block finish();

 private:
  void drop_untouched();
  OperandId add(Operand operand);
  /// Traffic of an operand in that layout, beyond what it has as it is held.
  Bytes difference(OperandId id, const Sharding& sharding) const;

  Block block_;
  Pass pass_;
  Mesh mesh_;
};

}  // namespace orrery::models
