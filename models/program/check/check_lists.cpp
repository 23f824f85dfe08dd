#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

#include "models/program/check/check.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

constexpr std::uint32_t no_owner = 0xffffffff;
/// Calls `visit` with each slot of a set, in order.
template <class Visit>
void for_each_slot(unsigned slots, Visit visit) {
  for (; slots != 0; slots &= slots - 1) visit(static_cast<Slot>(std::countr_zero(slots)));
}

/// State of one buffer: its owner, a micro-batch or the gather that filled it, and the instruction
/// that bound or freed it last.
struct Held {
  std::uint32_t owner = no_owner;
  Token at = no_token;
};

/// What instructions of one chunk and direction hold: the type of buffer in each slot, and the
/// slots that a phase must bind or use.
struct SlotRules {
  std::array<std::uint16_t, slot_count> types{};
  std::uint8_t needed = 0;
};

/// Follows one class's tokens and buffers.
class ListCheck : public ClassCheck {
 public:
  ListCheck(const Program& program, std::uint32_t c)
      : ClassCheck{program, c},
        consumed_(ranks_.instructions.size(), no_token),
        length_{static_cast<std::uint32_t>(ranks_.instructions.size())},
        held_(ranks_.types.size() << row_bits_) {
    for (const auto* buffers : {&ranks_.chunk_buffers, &ranks_.recomputing_buffers}) {
      for (std::size_t place = 0; place < buffers->size(); ++place) {
        const Chunk& chunk = program_.chunks[ranks_.chunks[place]];
        for (const bool up : {false, true}) add_rules((*buffers)[place], chunk, up);
      }
    }
    for (const std::uint32_t id : ranks_.chunks) {
      const bool keeps = program_.keeps_output_gradient(program_.chunks[id]);
      gradient_slots_.push_back(keeps ? slot_delayed : slot_in);
    }
  }

  void run() {
    walk(program_, class_, *this);
    if (received_ != taken_) all_consumed();
    for (std::size_t k = 0; k < held_.size(); ++k) {
      const Held& each = held_[k];
      if (each.owner == no_owner) continue;
      const std::string& type = ranks_.types[k >> row_bits_].name;
      refuse(each.at, fmt::format("binds {}[{}], which is never freed", type,
                                  k & ((std::size_t{1} << row_bits_) - 1)));
    }
  }

  void compute(Token i, const Instruction& each) {
    awaits(i, each);
    if (each.input != no_token) consume(i, each);
    if (program_.sharding.parameters) has_weights(i, each);
    const SlotRules& rules = rules_of(each, !descends(each));
    buffers(i, each, rules, rules.needed);
  }
  void weight_gradient(Token i, const Instruction& each) {
    awaits(i, each);
    if (each.input != no_token) refuse(i, "uses a transfer that backward has already used");
    buffers(i, each, rules_of(each, false), bit(slot_kept) | bit(slot_delayed));
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
    buffers(i, each, rules_of(each, program_.channels[each.target].forward), bit(slot_out));
  }
  void receive(Token i, const Instruction& each) {
    ++received_;
    const bool up = program_.channels[each.target].forward;
    const Slot slot = up ? slot_saved : gradient_slots_[program_.chunks[each.chunk].place];
    buffers(i, each, rules_of(each, up), bit(slot));
  }
  void joint(Token i, const Instruction& each) {
    if (each.input == no_token) return;
    if (!runs_phase(made(i, each.input))) refuse(i, "waits for an instruction that runs no phase");
  }
  void unshard(Token i, const Instruction& each) {
    joint(i, each);
    if (each.bindings[slot_filled] >= length_) refuse(i, "fills no buffer");
    bind(i, type_of_weights(each), each.bindings[slot_filled], i);
  }

 private:
  std::uint16_t type_of_weights(const Instruction& gather) const {
    return buffer_type(program_, ranks_, gather, slot_weights);
  }

  void add_rules(const ChunkBuffers& buffers, const Chunk& chunk, bool up) {
    SlotRules rules;
    rules.types[slot_saved] = buffers.saved;
    rules.types[slot_in] = buffers.gradient_in;
    rules.types[slot_out] = up ? buffers.out : buffers.gradient_out;
    rules.types[slot_kept] = buffers.kept;
    rules.types[slot_delayed] = buffers.delayed;
    const bool leaves = up ? !chunk.has_head : !chunk.has_embedding;
    const bool arrives = !up && !chunk.has_head && !program_.keeps_output_gradient(chunk);
    const bool splits = splits_backward(chunk);
    const unsigned kept = splits ? bit(slot_kept) : 0U;
    rules.needed = static_cast<std::uint8_t>(bit(slot_saved) | (arrives ? bit(slot_in) : 0U) |
                                             (leaves ? bit(slot_out) : 0U) | (up ? kept : 0U) |
                                             (!up && splits ? bit(slot_delayed) : 0U));
    rules_.push_back(rules);
  }
  const SlotRules& rules_of(const Instruction& each, bool up) const {
    std::size_t place = program_.chunks[each.chunk].place;
    if (recomputes_all(program_, ranks_, each)) place += ranks_.chunk_buffers.size();
    return rules_[2 * place + (up ? 1 : 0)];
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
    ++taken_;
  }

  void all_consumed() const {
    walk(program_, class_,
         Cases{pass_over, pass_over,
               [&](Token i, const Instruction&) {
                 if (consumed_[i] == no_token) refuse(i, "no instruction uses what it receives");
               },
               pass_over});
  }

  // --- buffers ------------------------------------------------------------------------------

  /// `needed`: the slots that such an instruction must bind or use.
  void buffers(Token i, const Instruction& each, const SlotRules& rules, unsigned needed) {
    const unsigned binds = each.binds, frees = each.frees;
    for_each_slot(needed, [&](Slot slot) {
      const std::uint16_t type = rules.types[slot];
      const std::uint32_t index = each.bindings[index_of(slot)];
      if (index >= length_) refuse(i, "binds no " + ranks_.types[type].name);
      (binds & bit(slot)) != 0 ? bind(i, type, index, each.micro_batch)
                               : use(i, type, index, each.micro_batch);
    });
    for_each_slot(frees & ~unsigned{bit(slot_weights)}, [&](Slot slot) {
      free(i, rules.types[slot], each.bindings[index_of(slot)], each.micro_batch);
    });
    if ((frees & bit(slot_weights)) != 0) free_weights(i, each);
  }

  Held& at(std::uint16_t type, std::uint32_t index) {
    if (index >> row_bits_ != 0) widen(index);
    return held_[(std::size_t{type} << row_bits_) + index];
  }
  /// Gives every type room for buffers up to this index.
  [[gnu::noinline]] void widen(std::uint32_t index) {
    ensure(index < length_, "an instruction frees a buffer that its list cannot have bound");
    const int before = row_bits_;
    row_bits_ = std::bit_width(index);
    std::vector<Held> wider(ranks_.types.size() << row_bits_);
    for (std::size_t k = 0; k < held_.size(); ++k) {
      const std::size_t type = k >> before, at = k - (type << before);
      wider[(type << row_bits_) + at] = held_[k];
    }
    held_ = std::move(wider);
  }
  using ClassCheck::refuse;
  [[noreturn]] void refuse(Token i, std::uint16_t type, std::uint32_t index,
                           const std::string& problem) const {
    refuse(i, fmt::format("{}[{}] {}", ranks_.types[type].name, index, problem));
  }

  void bind(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    Held& held = at(type, index);
    if (held.owner != no_owner) still_held(i, type, index, held);
    held = {owner, i};
  }
  [[noreturn]] void still_held(Token i, std::uint16_t type, std::uint32_t index,
                               const Held& held) const {
    const Instruction& holder = ranks_.instructions[held.at];
    const bool weights = holder.op == Opcode::unshard;
    refuse(i, type, index,
           weights ? "still holds '" + program_.collectives[holder.target].name + "'"
                   : fmt::format("is still held by mb{}", held.owner));
  }

  void use(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    const Held& held = at(type, index);
    if (held.owner != owner) not_held(i, type, index, held);
  }
  [[noreturn]] void not_held(Token i, std::uint16_t type, std::uint32_t index,
                             const Held& held) const {
    if (held.owner != no_owner) refuse(i, type, index, fmt::format("is held by mb{}", held.owner));
    refuse(i, type, index,
           held.at == no_token ? "is used before it is bound"
                               : "was freed at " + place(program_, class_, held.at));
  }

  void free(Token i, std::uint16_t type, std::uint32_t index, std::uint32_t owner) {
    Held& held = at(type, index);
    if (held.owner != owner) not_held(i, type, index, held);
    held = {no_owner, i};
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
    if (at(type_of_weights(gather), gather.bindings[slot_filled]).owner != token) {
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
      free(i, type_of_weights(gather), gather.bindings[slot_filled], t);
    }
  }

  std::vector<SlotRules> rules_;          // by chunk and direction; then those that recompute all
  std::vector<Slot> gradient_slots_;      // by chunk: where its output's gradient arrives
  std::size_t received_ = 0, taken_ = 0;  // receives so far, and those whose data was used
  std::vector<Token> consumed_;           // by receive: the instruction that took its data
  std::uint32_t length_;
  int row_bits_ = 4;
  std::vector<Held> held_;  // by type, a row of 2^row_bits_ each, and index of the buffer
};

}  // namespace

void check_lists(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ListCheck{program, c}.run();
}

}  // namespace orrery::models
