#include <utility>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// The channel on which a stage sends activations to the next one, and gradients to the one before.
std::uint32_t forward_channel(std::int64_t from) {
  return static_cast<std::uint32_t>(2 * from);
}
std::uint32_t backward_channel(std::int64_t from) {
  return static_cast<std::uint32_t>(2 * from + 1);
}

Instruction transfer(Opcode op, const Instruction& slot, std::uint32_t channel) {
  Instruction each;
  each.op = op;
  each.chunk = slot.chunk;
  each.micro_batch = slot.micro_batch;
  each.target = channel;
  return each;
}

/// Spreads one stage's slots out in its own list, from the last one on: a receive before a slot of
/// what it reads, a send after it of what it wrote.
class Spreader {
 public:
  Spreader(const Program& program, std::int64_t stage, std::vector<Instruction>& list)
      : program_{program}, list_{list}, slots_{list.size()} {
    const std::int64_t stages = program.mesh.degree(MeshAxis::pipeline);
    const std::int64_t above = (stage + stages - 1) % stages, below = (stage + 1) % stages;
    forward_ = {forward_channel(above), forward_channel(stage)};
    backward_ = {backward_channel(below), backward_channel(stage)};
  }

  void run() {
    std::size_t transfers = 0;
    for (const Instruction& slot : list_) {
      transfers += (receives(slot) ? 1U : 0U) + (sends(slot) ? 1U : 0U);
    }
    list_.resize(slots_ + transfers);
    std::size_t at = list_.size();
    for (std::size_t i = slots_; i-- > 0;) {
      const Instruction slot = list_[i];
      const auto [from, to] = slot.op == Opcode::forward ? forward_ : backward_;
      if (sends(slot)) list_[--at] = transfer(Opcode::send, slot, to);
      list_[--at] = slot;
      if (receives(slot)) list_[--at] = transfer(Opcode::receive, slot, from);
    }
  }

 private:
  /// Channels of a direction: where it receives and where it sends.
  struct Ends {
    std::uint32_t from = 0, to = 0;
  };

  bool receives(const Instruction& slot) const {
    const Chunk& chunk = program_.chunks[slot.chunk];
    return slot.op == Opcode::forward ? !chunk.embeds : !chunk.predicts;
  }
  bool sends(const Instruction& slot) const {
    const Chunk& chunk = program_.chunks[slot.chunk];
    return slot.op == Opcode::forward ? !chunk.predicts : !chunk.embeds;
  }

  const Program& program_;
  std::vector<Instruction>& list_;
  std::size_t slots_;
  Ends forward_, backward_;
};

}  // namespace

Program insert_transfers(Program program) {
  const std::int64_t stages = program.mesh.degree(MeshAxis::pipeline);
  if (stages == 1) return program;
  const std::uint16_t forth = program.communicator(CommunicatorRole::pipe_forward);
  const std::uint16_t back = program.communicator(CommunicatorRole::pipe_backward);
  for (std::int64_t from = 0; from < stages; ++from) {
    const auto of = [&](std::int64_t stage) { return static_cast<std::uint32_t>(stage); };
    program.channels.push_back({of(from), of((from + 1) % stages), true, program.boundary, forth});
    program.channels.push_back(
        {of(from), of((from + stages - 1) % stages), false, program.boundary, back});
  }
  for (RankClass& ranks : program.classes) {
    Spreader{program, ranks.stage, ranks.instructions}.run();
  }
  return program;
}

}  // namespace orrery::models
