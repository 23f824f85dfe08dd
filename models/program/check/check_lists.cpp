#include <fmt/format.h>

#include <array>

#include "models/program/check/check.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

constexpr std::uint32_t no_owner = 0xffffffff;
constexpr std::array of_micro_batch{slot_saved, slot_in, slot_out, slot_kept, slot_delayed};

/// State of one buffer: its owner, a micro-batch or the gather that filled it, and the instruction
/// that bound or freed it last.
struct Held {
  std::uint32_t owner = no_owner;
  Token at = no_token;
};

/// Follows one class's tokens and buffers.
class ListCheck : public ClassCheck {
 public:
  ListCheck(const Program& program, std::uint32_t c)
      : ClassCheck{program, c},
        consumed_(ranks_.instructions.size(), no_token),
        held_(ranks_.types.size()) {}

  void run() {
    walk(program_, class_, *this);
    walk(program_, class_,
         Cases{pass_over, pass_over,
               [&](Token i, const Instruction&) {
                 if (consumed_[i] == no_token) refuse(i, "no instruction uses what it receives");
               },
               pass_over});
    for (std::size_t type = 0; type < held_.size(); ++type) {
      for (std::size_t at = 0; at < held_[type].size(); ++at) {
        const Held& each = held_[type][at];
        if (each.owner == no_owner) continue;
        refuse(each.at,
               fmt::format("binds {}[{}], which is never freed", ranks_.types[type].name, at));
      }
    }
  }

  void compute(Token i, const Instruction& each) {
    const Chunk& chunk = program_.chunks[each.chunk];
    const bool up = !descends(each);
    awaits(i, each);
    if (each.input != no_token) consume(i, each);
    if (program_.sharding.parameters) has_weights(i, each);
    const bool leaves = up ? !chunk.has_head : !chunk.has_embedding;
    const bool arrives = !up && !chunk.has_head && !program_.keeps_output_gradient(chunk);
    const bool splits = splits_backward(chunk);
    const unsigned kept = splits ? bit(slot_kept) : 0U;
    buffers(i, each,
            bit(slot_saved) | (arrives ? bit(slot_in) : 0U) | (leaves ? bit(slot_out) : 0U) |
                (up ? kept : 0U) | (!up && splits ? bit(slot_delayed) : 0U));
  }
  void weight_gradient(Token i, const Instruction& each) {
    awaits(i, each);
    if (each.input != no_token) refuse(i, "uses a transfer that backward has already used");
    buffers(i, each, bit(slot_kept) | bit(slot_delayed));
  }
  void phase(Token i, const Instruction& each) {
    awaits(i, each);
    if (each.input == no_token) return;
    if (!is_joint(made(i, each.input))) refuse(i, "input is not a joint collective");
  }
  void send(Token i, const Instruction& each) {
    if (each.input == no_token) refuse(i, "send names no phase whose output it sends");
    const Instruction& run = made(i, each.input);
    const bool same = run.chunk == each.chunk && run.micro_batch == each.micro_batch;
    if (!runs_phase(run) || !same) refuse(i, "sends the output of another chunk or micro-batch");
    buffers(i, each, bit(slot_out));
  }
  void receive(Token i, const Instruction& each) {
    buffers(i, each, bit(receive_slot(program_, each)));
  }
  void joint(Token i, const Instruction& each) {
    if (each.input == no_token) return;
    if (!runs_phase(made(i, each.input))) refuse(i, "waits for an instruction that runs no phase");
  }
  void unshard(Token i, const Instruction& each) {
    joint(i, each);
    if (each.bindings[slot_filled] >= ranks_.instructions.size()) refuse(i, "fills no buffer");
    bind(i, type_of(each, slot_weights), each.bindings[slot_filled], i);
  }

 private:
  std::uint16_t type_of(const Instruction& each, Slot slot) const {
    return buffer_type(program_, ranks_, each, slot);
  }

  // --- tokens -------------------------------------------------------------------------------

  const Instruction& made(Token i, Token token) const {
    if (token >= i) refuse(i, "awaits an instruction that is not earlier in its list");
    return ranks_.instructions[token];
  }

  void awaits(Token i, const Instruction& each) const {
    if (each.awaits == no_token) return;
    if (each.awaits >= i || !is_joint(ranks_.instructions[each.awaits])) {
      refuse(i, "awaits a collective that is not earlier in its list");
    }
  }

  void consume(Token i, const Instruction& each) {
    const Instruction& from = made(i, each.input);
    if (from.op != Opcode::receive) refuse(i, "input is not a receive");
    if (from.chunk != each.chunk || from.micro_batch != each.micro_batch) {
      refuse(i, "input is of another chunk or micro-batch");
    }
    Token& consumed = consumed_[each.input];
    if (consumed != no_token)
      refuse(i, "input was already consumed by " + place(program_, class_, consumed));
    consumed = i;
  }

  // --- buffers ------------------------------------------------------------------------------

  /// `needed`: the slots that such an instruction must bind or use.
  void buffers(Token i, const Instruction& each, unsigned needed) {
    for (const Slot slot : of_micro_batch) {
      if ((needed & bit(slot)) == 0) continue;
      const std::uint16_t type = type_of(each, slot);
      const std::uint32_t index = each.bindings[index_of(slot)];
      if (index >= ranks_.instructions.size()) refuse(i, "binds no " + ranks_.types[type].name);
      (each.binds & bit(slot)) != 0 ? bind(i, type, index, each.micro_batch)
                                    : use(i, type, index, each.micro_batch);
    }
    for (const Slot slot : of_micro_batch) {
      if ((each.frees & bit(slot)) == 0) continue;
      free(i, type_of(each, slot), each.bindings[index_of(slot)], each.micro_batch);
    }
    if ((each.frees & bit(slot_weights)) != 0) free_weights(i, each);
  }

  Held& at(std::uint16_t type, std::uint32_t index) {
    std::vector<Held>& all = held_[type];
    if (index >= all.size()) all.resize(index + 1);
    return all[index];
  }
  using ClassCheck::refuse;
  [[noreturn]] void refuse(Token i, std::uint16_t type, std::uint32_t index,
                           const std::string& problem) const {
    refuse(i, fmt::format("{}[{}] {}", ranks_.types[type].name, index, problem));
  }

  void bind(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    Held& held = at(type, index);
    if (held.owner != no_owner) {
      const Instruction& holder = ranks_.instructions[held.at];
      const bool weights = holder.op == Opcode::unshard;
      refuse(i, type, index,
             weights ? "still holds '" + program_.collectives[holder.target].name + "'"
                     : fmt::format("is still held by mb{}", held.owner));
    }
    held = {owner, i};
  }

  void use(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    const Held& held = at(type, index);
    if (held.owner == owner) return;
    if (held.owner != no_owner) refuse(i, type, index, fmt::format("is held by mb{}", held.owner));
    refuse(i, type, index,
           held.at == no_token ? "is used before it is bound"
                               : "was freed at " + place(program_, class_, held.at));
  }

  void free(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    use(i, type, index, owner);
    at(type, index) = {no_owner, i};
  }

  // --- gathered weights ---------------------------------------------------------------------

  void has_weights(Token i, const Instruction& each) {
    for (const Invocation& run : program_.phases[each.target].invocations) {
      const BlockUse use = program_.use_of(run.block);
      const std::int64_t step = use.direction == Direction::forward ? 1 : -1;
      for (std::int64_t k = 0; k < run.count; ++k) {
        const std::int64_t layer = run.first_layer + k * step;
        if (holds(each.awaits, use, layer)) continue;
        refuse(i, (run.first_layer < 0 ? program_.blocks[run.block].name
                                       : fmt::format("layer {}", layer)) +
                      " runs without its weights");
      }
    }
  }

  bool holds(Token token, const BlockUse& use, std::int64_t layer) {
    if (token == no_token) return false;
    const Token first = first_gather(program_, ranks_, token);
    const bool apart =
        use.kind->expert_parameters > 0 && program_.mesh.degree(MeshAxis::expert_data) > 1;
    if (apart && !gathered(first, use, layer, MeshView::experts)) return false;
    return gathered(token, use, layer, MeshView::dense);
  }

  bool gathered(Token token, const BlockUse& use, std::int64_t layer, MeshView view) {
    const Instruction& gather = ranks_.instructions[token];
    if (gather.op != Opcode::unshard) return false;
    if (at(type_of(gather, slot_weights), gather.bindings[slot_filled]).owner != token) {
      return false;
    }
    const JointCollective& unit = program_.collectives[gather.target];
    if (program_.units[unit.first_unit].view != view) return false;
    if (!use.of(ModelPart::layer)) return program_.holds(unit, use.kind->part);
    return program_.layers_of(unit).has(layer);
  }

  void free_weights(Token i, const Instruction& each) {
    if (each.awaits == no_token) refuse(i, "frees weights that it does not await");
    for (Token t = first_gather(program_, ranks_, each.awaits); t <= each.awaits; ++t) {
      const Instruction& gather = ranks_.instructions[t];
      if (gather.op != Opcode::unshard) refuse(i, "frees weights that no unshard gathered");
      free(i, type_of(gather, slot_weights), gather.bindings[slot_filled], t);
    }
  }

  std::vector<Token> consumed_;          // by receive: the instruction that took its data
  std::vector<std::vector<Held>> held_;  // by type and index of the buffer
};

}  // namespace

void check_lists(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ListCheck{program, c}.run();
}

}  // namespace orrery::models
