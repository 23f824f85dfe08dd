#pragma once
// Formal operands of a block: shape, sharding, owner and lifetime. Addresses are left out: an
// instruction binds operands to buffers.

#include <cstdint>
#include <string>
#include <string_view>

#include "hardware/dtype.hpp"
#include "models/program/sharding.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

using hardware::DType;

/// Bytes of so many elements in this format.
inline Bytes bytes_in(DType type, std::int64_t elements) {
  return Bytes{elements * bits(type) / 8};
}

/// Who owns an operand and how long it lives.
enum class Role : std::uint8_t {
  input,      // written by the previous block
  output,     // read by the next block
  parameter,  // weights of the bound layer
  gradient,   // gradient accumulators of the bound layer
  optimizer,  // master weights and moments of the bound layers
  saved,      // written by forward, read by backward of the same layer and micro-batch
  delayed,    // written by a split backward, read by its weight-gradient block
  temporary,  // used only inside the block
  tokens,     // of the micro-batch
  labels,
  source,   // tokens of the micro-batch that an encoder reads
  carried,  // of the micro-batch, from the block that writes it to all that read it by its name
  on_host,  // offloaded activations, in host memory between forward and backward
};

/// Does an operand with this role come from another block, or go to one, with the micro-batch?
constexpr bool from_other_block(Role role) {
  return role == Role::input || role == Role::carried;
}
constexpr bool to_other_block(Role role) {
  return role == Role::output || role == Role::carried;
}

/// Initial values of a parameter.
struct Initial {
  enum class Kind : std::uint8_t { normal, zeros, ones };
  Kind kind = Kind::normal;
  /// Standard deviation, of Kind::normal.
  /// Source  Radford et al. 2019, GPT-2; initializer_range of its config.json
  double deviation = 0.02;
};

/// A share of a quantity, rounded to the nearest count; at share 1 exactly the whole, however
/// large.
template <class Q>
Q part_of(Q whole, double share) {
  return share < 1 ? nearest_count<Q>(share * static_cast<double>(whole.count())) : whole;
}

/// Operand name of the copies of the logits that a loss of autograd makes next to those it saves.
inline constexpr std::string_view logits_copies = "logits.copies";

/// A formal operand: a dense tensor in row-major order.
struct Operand {
  std::string name;  // "qkv.weight"
  Role role = Role::temporary;
  DType dtype = DType::bf16;
  Shape shape{1, 1, 1};  // on one rank; unused leading dimensions are 1
  Shape uncut{1, 1, 1};  // before sharding
  /// Layout between operations. Gradients of a replicated parameter that each rank computes from
  /// its own rows or heads are partial sums; they are reduced once, before the gradient norm.
  Sharding sharding{};
  /// Of a parameter and its gradient: the model's tensor, "qkv.weight"; of a tied head, the table
  /// that it shares.
  std::string tensor{};
  /// Of a parameter and its gradient: the mesh view whose replicas hold it, dense or experts.
  MeshView view = MeshView::dense;
  Initial initial{};        // of a parameter
  bool adapter = false;     // a parameter of an adapter, or its gradient
  bool frozen = false;      // a parameter that training leaves as it is
  bool transposed = false;  // an executor stores it as [columns, rows], like a tied table
  double filled = 1;        // expected share of its expert slots that hold a row; others are empty

  /// Is it a head's name for a table that it shares with the embedding?
  bool tied() const { return role == Role::parameter && !tensor.empty() && tensor != name; }
  /// Number of elements, and their size, on one rank.
  /// Errors  beyond 2^63 bits, in both: InputError
  std::int64_t elements() const { return multiplied<Bytes>(shape[0], shape[1], shape[2]).count(); }
  Bytes bytes() const {
    const Bytes in_bits = Bytes{elements()} * bits(dtype);
    return Bytes{in_bits.count() / 8 + (in_bits.count() % 8 > 0 ? 1 : 0)};
  }
  /// Bytes that an operation reads or writes: those of filled rows.
  Bytes moved() const { return part_of(bytes(), filled); }
};

using OperandId = std::uint16_t;

}  // namespace orrery::models
