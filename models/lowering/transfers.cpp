#include <utility>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// The channel on which a stage sends activations or gradients to another; a new one where there is
/// none yet. From a stage to itself where two chunks that follow each other are on one.
std::uint32_t channel_between(Program& program, std::int64_t from, std::int64_t to, bool forward) {
  const auto begin = static_cast<std::uint32_t>(from), end = static_cast<std::uint32_t>(to);
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    const Channel& each = program.channels[c];
    if (each.from == begin && each.to == end && each.forward == forward) return c;
  }
  const auto role = forward ? CommunicatorRole::pipe_forward : CommunicatorRole::pipe_backward;
  program.channels.push_back({begin, end, forward, program.boundary, program.communicator(role)});
  return static_cast<std::uint32_t>(program.channels.size() - 1);
}

/// Channels around a chunk.
struct ChunkChannels {
  std::uint32_t from_before = 0, to_after = 0, from_after = 0, to_before = 0;
};

std::vector<ChunkChannels> add_channels(Program& program) {
  const std::int64_t stages = program.mesh.degree(MeshAxis::pipeline);
  // To the next stage and to the one before, all round.
  for (std::int64_t from = 0; from < stages; ++from) {
    channel_between(program, from, (from + 1) % stages, true);
    channel_between(program, from, (from + stages - 1) % stages, false);
  }
  std::vector<ChunkChannels> all(program.chunks.size());
  for (std::size_t c = 0; c + 1 < all.size(); ++c) {
    if (program.chunks[c].predicts) continue;  // the next one begins another copy of the model
    const std::int64_t here = program.chunks[c].stage, next = program.chunks[c + 1].stage;
    all[c].to_after = all[c + 1].from_before = channel_between(program, here, next, true);
    all[c].from_after = all[c + 1].to_before = channel_between(program, next, here, false);
  }
  return all;
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
  Spreader(const Program& program, const std::vector<ChunkChannels>& channels,
           std::vector<Instruction>& list)
      : program_{program}, channels_{channels}, list_{list}, slots_{list.size()} {}

  void run() {
    std::size_t transfers = 0;
    for (const Instruction& slot : list_) {
      transfers += (receives(slot) ? 1U : 0U) + (sends(slot) ? 1U : 0U);
    }
    list_.resize(slots_ + transfers);
    std::size_t at = list_.size();
    for (std::size_t i = slots_; i-- > 0;) {
      const Instruction slot = list_[i];
      const ChunkChannels& around = channels_[slot.chunk];
      const bool up = slot.op == Opcode::forward;
      const std::uint32_t from = up ? around.from_before : around.from_after;
      const std::uint32_t to = up ? around.to_after : around.to_before;
      if (sends(slot)) list_[--at] = transfer(Opcode::send, slot, to);
      list_[--at] = slot;
      if (receives(slot)) list_[--at] = transfer(Opcode::receive, slot, from);
    }
  }

 private:
  bool receives(const Instruction& slot) const {
    const Chunk& chunk = program_.chunks[slot.chunk];
    if (slot.op == Opcode::weight_gradient) return false;
    return slot.op == Opcode::forward ? !chunk.embeds : !chunk.predicts;
  }
  bool sends(const Instruction& slot) const {
    const Chunk& chunk = program_.chunks[slot.chunk];
    if (slot.op == Opcode::weight_gradient) return false;
    return slot.op == Opcode::forward ? !chunk.predicts : !chunk.embeds;
  }

  const Program& program_;
  const std::vector<ChunkChannels>& channels_;
  std::vector<Instruction>& list_;
  std::size_t slots_;
};

}  // namespace

Program insert_transfers(Program program) {
  if (program.mesh.degree(MeshAxis::pipeline) == 1) return program;
  const std::vector<ChunkChannels> channels = add_channels(program);
  for (RankClass& ranks : program.classes) {
    Spreader{program, channels, ranks.instructions}.run();
  }
  return program;
}

}  // namespace orrery::models
