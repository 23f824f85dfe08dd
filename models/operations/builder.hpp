#pragma once
// Builds one block by naming operands and operations in the order they run. The memory traffic of
// an operation is the size of its operands, each read or written once, unless the caller sets it.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "models/program/block.hpp"

namespace orrery::models {

using Operands = std::initializer_list<OperandId>;

/// A tensor of the model: a block has an operand for the parameter and one for its gradient.
struct ModelTensor {
  std::string name;  // within the block: "qkv.weight"
  Shape uncut{1, 1, 1};
  Sharding sharding{};
  Initial initial{};
  std::string tied_to{};  // name of the tensor that this one aliases (tied weights)
  bool transposed = false;
  MeshView view = MeshView::dense;  // the view of the mesh that defines which ranks replicate it
  bool adapter = false;
  bool frozen = false;  // never updated, not even when the whole model is trained
};

class BlockBuilder {
 public:
  BlockBuilder(std::string name, Pass pass, const Mesh& mesh = {}) : pass_{pass}, mesh_{mesh} {
    block_.name = std::move(name);
  }

  /// Adds a formal operand by its unsharded shape; a name already in use returns that operand.
  OperandId operand(std::string_view name, Role role, DType dtype, const Shape& uncut,
                    const Sharding& sharding = {});
  OperandId parameter(const ModelTensor& tensor, DType dtype);
  /// The accumulator of the tensor's gradient; each rank along `partial` holds a partial sum.
  OperandId gradient(const ModelTensor& tensor, DType dtype, AxisSet partial = {});

  /// Adds an operation; its memory traffic is counted from its operands.
  Operation& add(OpKind kind, std::string_view name, Operands reads, Operands writes);
  /// Adds one more operand to `op`, and its traffic.
  void read(Operation& op, OperandId id) const;
  void write(Operation& op, OperandId id) const;
  /// States that `op` reads (need) or writes (make) the operand in this layout instead of the one
  /// in which it is stored; its traffic is then that of this layout.
  void need(Operation& op, OperandId id, const Sharding& sharding) const;
  void make(Operation& op, OperandId id, const Sharding& sharding) const;
  /// A GEMM whose FLOPs follow from its shape; `dtype` is the format of the arithmetic.
  Operation& gemm(std::string_view name, OperandId a, OperandId b, OperandId out, GemmShape shape,
                  DType dtype);
  /// Multiplies each matrix of a with the matrix of b of the same index (one pair per expert);
  /// `shape` covers the rows of all of them.
  Operation& grouped_gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                          GemmShape shape, DType dtype);
  /// A collective inside the block over the communicator with that role; its payload is the larger
  /// of its two operands unless the caller sets it.
  Operation& collective(Collective kind, std::string_view name, CommunicatorRole role,
                        OperandId from, OperandId to);
  Operation& batched_gemm(std::string_view name, OperandId a, OperandId b, OperandId out,
                          GemmShape shape, DType dtype);
  /// Useful FLOPs of forward attention: 2 b h s^2 (d + v) with v the width of a value, half of it
  /// when causal; under a sliding window w < s the square becomes 2 (s w - w^2 / 2), of which
  /// causal attention has half. With `keys` set, each of the s query tokens attends to all `keys`.
  static Flops attention_flops(const AttentionShape& shape);

  const Operand& at(OperandId id) const { return block_.operands[id]; }
  /// Sets the expected share of an operand's slots that hold a row (experts' buffers have spares).
  void fill(OperandId id, double share) { block_.operands[id].filled = share; }
  /// Number of operations so far, and the operations from index `first` on.
  std::size_t size() const { return block_.operations.size(); }
  std::span<Operation> since(std::size_t first) {
    return std::span{block_.operations}.subspan(first);
  }
  /// Shape of one rank's shard of an operand in that layout.
  Shape shape(OperandId id, const Sharding& sharding) const {
    return local_shape(at(id).uncut, sharding, mesh_);
  }
  const Mesh& mesh() const { return mesh_; }
  std::optional<OperandId> find(std::string_view operand) const { return block_.find(operand); }
  /// The last operation so far that writes the operand; null: none.
  const Operation* writer(OperandId id) const;
  Block finish();

 private:
  void drop_untouched();
  OperandId add(Operand operand);
  /// Traffic of an operand in that layout minus its traffic in the layout in which it is stored.
  Bytes difference(OperandId id, const Sharding& sharding) const;

  Block block_;
  Pass pass_;
  Mesh mesh_;
};

}  // namespace orrery::models
