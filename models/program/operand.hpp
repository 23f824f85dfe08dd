#pragma once
// Formal operands of a block: what they are, how they are cut, who owns them.

#include <cstdint>
#include <string>

#include "hardware/dtype.hpp"
#include "models/program/sharding.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

using hardware::DType;

/// Who owns an operand and how long it lives.
enum class Role : std::uint8_t {
  input,      // bound to what the block before wrote
  output,     // bound to what the block after reads
  parameter,  // of the bound layer
  gradient,   // accumulators of the bound layer
  optimizer,  // master weights and moments of the bound layers
  saved,      // written by forward, read by backward of the same layer and micro-batch
  delayed,    // written by a backward that is split, read by its weight gradient
  temporary,  // lives inside the block
  tokens,     // of the micro-batch
  labels,
  on_host,  // between forward and backward, where the device keeps nothing saved
};

/// What a parameter is before the first step.
struct Initial {
  enum class Kind : std::uint8_t { normal, zeros, ones };
  Kind kind = Kind::normal;
  /// Of normal ones.
  /// Source  Radford et al. 2019, GPT-2; initializer_range of its config.json
  double deviation = 0.02;
};

/// The nearest whole count; all of it at 1, however large.
template <class Q>
Q part_of(Q whole, double share) {
  return share < 1 ? nearest_count<Q>(share * static_cast<double>(whole.count())) : whole;
}

/// A formal operand: a dense tensor in row-major order.
struct Operand {
  std::string name;  // "qkv.weight"
  Role role = Role::temporary;
  DType dtype = DType::bf16;
  Shape shape{1, 1, 1};  // what a rank holds; unused leading dimensions are 1
  Shape uncut{1, 1, 1};
  /// How it is held between operations. A gradient's partial sums are added up once, before the
  /// norm: made from a rank's own rows or heads of a parameter that all ranks hold whole.
  Sharding sharding{};
  /// Of a parameter and its gradient: the tensor of the model, "qkv.weight"; where a table is tied,
  /// the one that both its names mean.
  std::string tensor{};
  /// Of a parameter and its gradient: the view of the mesh whose replicas hold it.
  MeshView view = MeshView::dense;
  Initial initial{};        // of a parameter
  bool adapter = false;     // a parameter of an adapter, or its gradient
  bool frozen = false;      // a parameter that training leaves as it is
  bool transposed = false;  // an executor stores it as [columns, rows], like a tied table
  double filled = 1;        // of its slots, the share that is expected to hold a row of an expert

  /// Another name of a table: a head's of the embedding's.
  bool tied() const { return role == Role::parameter && !tensor.empty() && tensor != name; }
  /// Errors of both  beyond 2^63 bits: InputError
  std::int64_t elements() const { return multiplied<Bytes>(shape[0], shape[1], shape[2]).count(); }
  Bytes bytes() const {
    const Bytes in_bits = Bytes{elements()} * bits(dtype);
    return Bytes{in_bits.count() / 8 + (in_bits.count() % 8 > 0 ? 1 : 0)};
  }
  /// Of the rows in it: what an operation reads or writes.
  Bytes moved() const { return part_of(bytes(), filled); }
};

using OperandId = std::uint16_t;

}  // namespace orrery::models
