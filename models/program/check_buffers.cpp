#include <fmt/format.h>

#include "models/program/check.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

constexpr std::uint32_t unused = 0xffffffff;

/// One buffer of a type: who holds it, and the instruction that bound or freed it last.
struct Held {
  std::uint32_t micro_batch = no_binding;  // nobody's
  std::uint32_t at = unused;
};

/// Follows one class's bindings.
class BufferCheck {
 public:
  BufferCheck(const Program& program, std::uint32_t c)
      : program_{program},
        ranks_{program.classes[c]},
        class_{c},
        stages_{static_cast<std::uint32_t>(program.plan.pipeline)},
        chunks_{static_cast<std::uint32_t>(program.plan.chunks())},
        micro_batches_{static_cast<std::uint32_t>(program.plan.micro_batches())},
        held_(ranks_.types.size()) {}

  void run() {
    for (index_ = 0; index_ < ranks_.instructions.size(); ++index_) {
      step(ranks_.instructions[index_]);
    }
    for (std::size_t type = 0; type < held_.size(); ++type) {
      for (std::size_t at = 0; at < held_[type].size(); ++at) {
        const Held& each = held_[type][at];
        if (each.micro_batch == no_binding) continue;
        throw ContractError{fmt::format("{}: binds {}[{}], which is never freed",
                                        place(program_, class_, each.at), ranks_.types[type].name,
                                        at)};
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::uint16_t type, std::uint32_t index, std::string problem) const {
    throw ContractError{fmt::format("{}: {}[{}] {}", place(program_, class_, index_),
                                    ranks_.types[type].name, index, problem)};
  }

  void step(const Instruction& each) {
    if (each.op > Opcode::receive) return;
    const ChunkBuffers& types = ranks_.chunk_buffers[each.chunk / stages_];
    const bool computes = each.op == Opcode::forward || each.op == Opcode::backward;
    const bool forward =
        computes ? each.op == Opcode::forward : program_.channels[each.target].forward;
    const std::uint16_t out = forward ? types.out : types.gradient_out;
    switch (each.op) {
      case Opcode::receive:
        forward ? bind(types.saved, each, slot_saved) : bind(types.gradient_in, each, slot_in);
        break;
      case Opcode::forward:
        each.chunk == 0 ? bind_first(types.saved, each, slot_saved)
                        : use(types.saved, each, slot_saved);
        if (leaves(each)) bind_first(out, each, slot_out);
        break;
      case Opcode::backward:
        use(types.saved, each, slot_saved);
        if (each.chunk + 1U < chunks_) use(types.gradient_in, each, slot_in);
        if (leaves(each)) bind_first(out, each, slot_out);
        break;
      default:
        use(out, each, slot_out);
        break;
    }
    if (each.frees == 0) return;
    if ((each.frees & (1U << slot_saved)) != 0) free(types.saved, each, slot_saved);
    if ((each.frees & (1U << slot_in)) != 0) free(types.gradient_in, each, slot_in);
    if ((each.frees & (1U << slot_out)) != 0) free(out, each, slot_out);
  }

  /// Does the chunk have a neighbour that takes what it puts out?
  bool leaves(const Instruction& each) const {
    return each.op == Opcode::forward ? each.chunk + 1U < chunks_ : each.chunk > 0;
  }

  Held& at(std::uint16_t type, const Instruction& each, Slot slot) {
    const std::uint32_t index = each.bindings[slot];
    if (index >= micro_batches_) {
      throw ContractError{
          fmt::format("{}: binds no {}", place(program_, class_, index_), ranks_.types[type].name)};
    }
    std::vector<Held>& all = held_[type];
    if (index >= all.size()) all.resize(index + 1);
    return all[index];
  }

  void bind(std::uint16_t type, const Instruction& each, Slot slot) {
    Held& held = at(type, each, slot);
    if (held.micro_batch != no_binding) {
      refuse(type, each.bindings[slot], fmt::format("is still held by mb{}", held.micro_batch));
    }
    held = {each.micro_batch, static_cast<std::uint32_t>(index_)};
  }

  /// A run that is cut into parts binds its buffers in the first.
  void bind_first(std::uint16_t type, const Instruction& each, Slot slot) {
    if (at(type, each, slot).micro_batch != each.micro_batch) bind(type, each, slot);
  }

  void use(std::uint16_t type, const Instruction& each, Slot slot) {
    const Held& held = at(type, each, slot);
    if (held.micro_batch == each.micro_batch) return;
    if (held.micro_batch != no_binding) {
      refuse(type, each.bindings[slot], fmt::format("is held by mb{}", held.micro_batch));
    }
    refuse(type, each.bindings[slot],
           held.at == unused ? "is used before it is bound"
                             : "was freed at " + place(program_, class_, held.at));
  }

  void free(std::uint16_t type, const Instruction& each, Slot slot) {
    use(type, each, slot);
    at(type, each, slot) = {no_binding, static_cast<std::uint32_t>(index_)};
  }

  const Program& program_;
  const RankClass& ranks_;
  std::uint32_t class_;
  std::uint32_t stages_, chunks_, micro_batches_;
  std::vector<std::vector<Held>> held_;  // by type and index
  std::size_t index_ = 0;
};

}  // namespace

void check_buffers(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) BufferCheck{program, c}.run();
}

}  // namespace orrery::models
