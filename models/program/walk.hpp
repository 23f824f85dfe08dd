#pragma once
// The one place that distinguishes instructions. Code that follows a rank's list does it with a
// visitor, which has
//
//   phase     of forward, backward, weight_gradient, optimizer, compress: `target` is a phase
//   send      receive: `target` is a channel
//   joint     of reduce_gradient, tie, norm, gather, unshard: its rank's part in a joint
//   collective,
//             which `target` is
//
// each called with (index in the list, instruction). It may have `compute` for forward, backward
// and weight_gradient, and one of its own, named after the opcode, for any of them.

#include <algorithm>
#include <array>
#include <cstdint>

#include "models/program/program.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// Calls what `visitor` has for one instruction, const or not, and returns what that returns.
template <class Each, class Visitor>
constexpr decltype(auto) visit(std::uint32_t i, Each& each, Visitor&& visitor) {
  const auto compute = [&]() -> decltype(auto) {
    if constexpr (requires { visitor.compute(i, each); }) {
      return visitor.compute(i, each);
    } else {
      return visitor.phase(i, each);
    }
  };
  switch (each.op) {
    case Opcode::forward:
      if constexpr (requires { visitor.forward(i, each); }) {
        return visitor.forward(i, each);
      } else {
        return compute();
      }
    case Opcode::backward:
      if constexpr (requires { visitor.backward(i, each); }) {
        return visitor.backward(i, each);
      } else {
        return compute();
      }
    case Opcode::weight_gradient:
      if constexpr (requires { visitor.weight_gradient(i, each); }) {
        return visitor.weight_gradient(i, each);
      } else {
        return compute();
      }
    case Opcode::optimizer:
      if constexpr (requires { visitor.optimizer(i, each); }) {
        return visitor.optimizer(i, each);
      } else {
        return visitor.phase(i, each);
      }
    case Opcode::compress:
      if constexpr (requires { visitor.compress(i, each); }) {
        return visitor.compress(i, each);
      } else {
        return visitor.phase(i, each);
      }
    case Opcode::send:
      return visitor.send(i, each);
    case Opcode::receive:
      return visitor.receive(i, each);
    case Opcode::reduce_gradient:
      if constexpr (requires { visitor.reduce_gradient(i, each); }) {
        return visitor.reduce_gradient(i, each);
      } else {
        return visitor.joint(i, each);
      }
    case Opcode::tie:
      if constexpr (requires { visitor.tie(i, each); }) {
        return visitor.tie(i, each);
      } else {
        return visitor.joint(i, each);
      }
    case Opcode::norm:
      if constexpr (requires { visitor.norm(i, each); }) {
        return visitor.norm(i, each);
      } else {
        return visitor.joint(i, each);
      }
    case Opcode::gather:
      if constexpr (requires { visitor.gather(i, each); }) {
        return visitor.gather(i, each);
      } else {
        return visitor.joint(i, each);
      }
    case Opcode::unshard:
      if constexpr (requires { visitor.unshard(i, each); }) {
        return visitor.unshard(i, each);
      } else {
        return visitor.joint(i, each);
      }
  }
  throw ContractError{"an instruction of no known kind"};
}

/// Visits one class's list in order.
template <class Visitor>
void walk(const Program& program, std::uint32_t rank_class, Visitor&& visitor) {
  const std::vector<Instruction>& list = program.classes[rank_class].instructions;
  for (std::uint32_t i = 0; i < list.size(); ++i) visit(i, list[i], visitor);
}

/// A visitor made of four functions.
template <class OnPhase, class OnSend, class OnReceive, class OnJoint>
struct Cases {
  OnPhase phase;
  OnSend send;
  OnReceive receive;
  OnJoint joint;
};
template <class OnPhase, class OnSend, class OnReceive, class OnJoint>
Cases(OnPhase, OnSend, OnReceive, OnJoint) -> Cases<OnPhase, OnSend, OnReceive, OnJoint>;

/// For what a visitor has no use for.
inline constexpr auto pass_over = [](std::uint32_t, const Instruction&) {};

/// By opcode: which a visitor answers with true.
template <class Visitor>
constexpr std::array<bool, opcode_count> opcodes_where(const Visitor& visitor) {
  std::array<bool, opcode_count> found{};
  for (std::size_t op = 0; op < found.size(); ++op) {
    Instruction each;
    each.op = static_cast<Opcode>(op);
    found[op] = visit(0, each, visitor);
  }
  return found;
}
inline constexpr auto always = [](auto...) { return true; };
inline constexpr auto not_at_all = [](auto...) { return false; };
inline constexpr auto phase_opcodes =
    opcodes_where(Cases{always, not_at_all, not_at_all, not_at_all});
inline constexpr auto joint_opcodes =
    opcodes_where(Cases{not_at_all, not_at_all, not_at_all, always});

inline bool runs_phase(const Instruction& each) {
  return phase_opcodes[static_cast<std::size_t>(each.op)];
}
inline bool is_joint(const Instruction& each) {
  return joint_opcodes[static_cast<std::size_t>(each.op)];
}

/// Does it run layers from the model's last to its first?
inline bool descends(const Instruction& each) {
  return each.op == Opcode::backward || each.op == Opcode::weight_gradient;
}

/// Does a phase or a transfer belong to the way from the model's first layer to its last?
inline bool ascends(const Program& program, const Instruction& each) {
  if (each.op == Opcode::send || each.op == Opcode::receive) {
    return program.channels[each.target].forward;
  }
  return runs_phase(each) && !descends(each);
}

/// Does any kind of layer leave its weight gradients to a block of its own?
inline bool splits_backward(const Program& program) {
  return std::any_of(program.kinds.begin(), program.kinds.end(),
                     [](const LayerKind& each) { return each.weight_gradient.has_value(); });
}

/// Where a transfer arrives: activations in what is saved of them, gradients where the weight
/// gradients of the chunk's last layer find them, or in a buffer that ends with backward.
inline Slot arrival_of(const Program& program, const Instruction& receive) {
  if (program.channels[receive.target].forward) return slot_saved;
  return program.delays_arrival(program.chunks[receive.chunk]) ? slot_delayed : slot_in;
}

/// The type of the buffer that an instruction binds, uses or frees in a slot, as an index into
/// RankClass::types.
inline std::uint16_t buffer_type(const Program& program, const RankClass& ranks,
                                 const Instruction& each, Slot slot) {
  if (slot == slot_weights) {
    const Instruction& gather = each.op == Opcode::unshard ? each : ranks.instructions[each.awaits];
    return program.collectives[gather.target].buffer;
  }
  const ChunkBuffers& buffers = ranks.chunk_buffers[program.chunks[each.chunk].place];
  if (slot == slot_saved) return buffers.saved;
  if (slot == slot_in) return buffers.gradient_in;
  if (slot == slot_kept) return buffers.kept;
  if (slot == slot_delayed) return buffers.delayed;
  return ascends(program, each) ? buffers.out : buffers.gradient_out;
}

}  // namespace orrery::models
