#include <utility>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// Instructions to reserve room for: buckets and the end of the step.
constexpr std::size_t step_end = 64;

/// Finds or adds the channel on which a stage sends activations or gradients to another. It leads
/// from a stage to itself where two consecutive chunks are on one stage.
std::uint32_t channel_between(Program& program, std::int64_t from, std::int64_t to, bool forward) {
  const auto begin = static_cast<std::uint32_t>(from), end = static_cast<std::uint32_t>(to);
  for (std::uint32_t c = 0; c < program.channels.size(); ++c) {
    const Channel& each = program.channels[c];
    if (each.from == begin && each.to == end && each.forward == forward) return c;
  }
  const auto role = forward ? CommunicatorRole::pipe_forward : CommunicatorRole::pipe_backward;
  const Bytes bytes = program.activation_bytes + (forward ? program.reference_bytes : Bytes{});
  return appended(program.channels, {begin, end, forward, bytes, program.communicator(role)});
}

constexpr std::uint32_t no_channel = 0xffffffff;

/// The channels between a chunk and its neighbours; none before the first chunk and after the last.
struct ChunkChannels {
  std::uint32_t from_before = no_channel, to_after = no_channel;
  std::uint32_t from_after = no_channel, to_before = no_channel;
};

std::vector<ChunkChannels> add_channels(Program& program) {
  const std::int64_t stages = program.mesh.degree(MeshAxis::pipeline);
  // From every stage to the next and to the previous one, cyclically.
  for (std::int64_t from = 0; from < stages; ++from) {
    channel_between(program, from, (from + 1) % stages, true);
    channel_between(program, from, (from + stages - 1) % stages, false);
  }
  std::vector<ChunkChannels> all(program.chunks.size());
  for (std::size_t c = 0; c + 1 < all.size(); ++c) {
    if (program.chunks[c].has_head) continue;  // the next one begins another copy of the model
    const std::int64_t here = program.chunks[c].stage, next = program.chunks[c + 1].stage;
    all[c].to_after = all[c + 1].from_before = channel_between(program, here, next, true);
    all[c].from_after = all[c + 1].to_before = channel_between(program, next, here, false);
  }
  return all;
}

Instruction transfer(Opcode op, const Instruction& slot, std::uint32_t channel) {
  return {.op = op, .chunk = slot.chunk, .target = channel, .micro_batch = slot.micro_batch};
}

/// One stage's slots, each with a receive before it of what it reads and a send after it of what it
/// wrote.
std::vector<Instruction> with_transfers(const std::vector<Instruction>& slots,
                                        const std::vector<ChunkChannels>& channels) {
  std::vector<Instruction> list;
  list.reserve(3 * slots.size() + step_end);
  for (const Instruction& slot : slots) {
    if (slot.op == Opcode::weight_gradient) {
      list.push_back(slot);
      continue;
    }
    const ChunkChannels& around = channels[slot.chunk];
    const bool up = slot.op == Opcode::forward;
    const std::uint32_t from = up ? around.from_before : around.from_after;
    const std::uint32_t to = up ? around.to_after : around.to_before;
    if (from != no_channel) list.push_back(transfer(Opcode::receive, slot, from));
    list.push_back(slot);
    if (to != no_channel) list.push_back(transfer(Opcode::send, slot, to));
  }
  return list;
}

}  // namespace

Program insert_transfers(Program program) {
  if (program.mesh.degree(MeshAxis::pipeline) == 1) return program;
  const std::vector<ChunkChannels> channels = add_channels(program);
  for (RankClass& ranks : program.classes) {
    ranks.instructions = with_transfers(ranks.instructions, channels);
  }
  return program;
}

}  // namespace orrery::models
