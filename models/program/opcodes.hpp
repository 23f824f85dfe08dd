#pragma once
// Properties of an instruction that follow from its opcode, and the buffer types behind its slots.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "models/program/walk.hpp"

namespace orrery::models {

/// For each opcode: does the visitor return true?
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
// Cases are in the order phase, send, receive, joint.
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

/// Does it run layers in backward order, from the model's last to its first?
inline bool descends(const Instruction& each) {
  return each.op == Opcode::backward || each.op == Opcode::weight_gradient;
}

/// Does a phase or a transfer go in forward direction, from the model's first layer to its last?
inline bool ascends(const Program& program, const Instruction& each) {
  if (each.op == Opcode::send || each.op == Opcode::receive) {
    return program.channels[each.target].forward;
  }
  return runs_phase(each) && !descends(each);
}

/// Does it run weight gradients in a phase of their own?
inline bool splits_backward(const Chunk& chunk) {
  return chunk.weight_gradient.has_value();
}

/// The slot in which a transfer arrives: activations in `saved`; gradients in `delayed` where the
/// weight gradients of the chunk's last layer read them, otherwise in `in`, which backward frees.
inline Slot receive_slot(const Program& program, const Instruction& receive) {
  if (program.channels[receive.target].forward) return slot_saved;
  return program.keeps_output_gradient(program.chunks[receive.chunk]) ? slot_delayed : slot_in;
}

/// The first of the gathers whose weights a phase reads if it awaits `gather`, which is the last.
inline Token first_gather(const Program& program, const RankClass& ranks, Token gather) {
  const Instruction& last = ranks.instructions[gather];
  const bool two = last.op == Opcode::unshard && program.collectives[last.target].completes;
  return two ? gather - 1 : gather;
}

/// Is it of a micro-batch of which all layers recompute, while others recompute in part?
inline bool recomputes_all(const Program& program, const RankClass& ranks,
                           const Instruction& each) {
  if (ranks.recomputes.empty()) return false;
  const auto micro_batches = static_cast<std::size_t>(program.step.micro_batches);
  return ranks.recomputes[program.chunks[each.chunk].place * micro_batches + each.micro_batch];
}

/// The type of the buffer that an instruction binds, uses or frees in a slot: an index into
/// RankClass::types. Of weights that two gathers fill, the second one's.
inline std::uint16_t buffer_type(const Program& program, const RankClass& ranks,
                                 const Instruction& each, Slot slot) {
  if (slot == slot_weights) {
    const Instruction& gather = each.op == Opcode::unshard ? each : ranks.instructions[each.awaits];
    return program.collectives[gather.target].buffer;
  }
  const bool again = recomputes_all(program, ranks, each);
  const ChunkBuffers& buffers =
      (again ? ranks.recomputing_buffers : ranks.chunk_buffers)[program.chunks[each.chunk].place];
  if (slot == slot_saved) return buffers.saved;
  if (slot == slot_in) return buffers.gradient_in;
  if (slot == slot_kept) return buffers.kept;
  if (slot == slot_delayed) return buffers.delayed;
  return ascends(program, each) ? buffers.out : buffers.gradient_out;
}

}  // namespace orrery::models
