#pragma once
// The only switch over opcodes. Code that goes through a rank's instruction list passes a visitor
// with four functions, each called with (index in the list, instruction):
//
//   phase    forward, backward, weight_gradient, optimizer, compress; `target` is a phase
//   send     `target` is a channel
//   receive  `target` is a channel
//   joint    reduce_gradient, sum_replicas, norm, gather, unshard; `target` is a joint collective
//
// A visitor may also have `compute`, called for forward, backward and weight_gradient, and a
// function named after an opcode. The most specific one is called.

#include <cstdint>

#include "models/program/program.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// Calls the visitor's function for one instruction, const or not, and returns its result.
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
    case Opcode::sum_replicas:
      if constexpr (requires { visitor.sum_replicas(i, each); }) {
        return visitor.sum_replicas(i, each);
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

/// Ignores an instruction.
inline constexpr auto pass_over = [](std::uint32_t, const Instruction&) {};

}  // namespace orrery::models
