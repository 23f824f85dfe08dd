#include <utility>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

Instruction transfer(Opcode op, const Instruction& slot, std::uint32_t channel) {
  Instruction each;
  each.op = op;
  each.chunk = slot.chunk;
  each.micro_batch = slot.micro_batch;
  each.target = channel;
  return each;
}

/// Receives before a slot what it reads and sends after it what it wrote.
void surround(const Instruction& slot, std::int64_t stages, std::int64_t chunks,
              std::vector<Instruction>& out) {
  const std::int64_t stage = slot.chunk % stages;
  const std::int64_t above = (stage + stages - 1) % stages;
  const std::int64_t below = (stage + 1) % stages;
  const bool forward = slot.op == Opcode::forward;
  const bool first = slot.chunk == 0;
  const bool last = slot.chunk == chunks - 1;
  if (forward && !first) out.push_back(transfer(Opcode::receive, slot, forward_channel(above)));
  if (!forward && !last) out.push_back(transfer(Opcode::receive, slot, backward_channel(below)));
  out.push_back(slot);
  if (forward && !last) out.push_back(transfer(Opcode::send, slot, forward_channel(stage)));
  if (!forward && !first) out.push_back(transfer(Opcode::send, slot, backward_channel(stage)));
}

}  // namespace

Program insert_transfers(Program program) {
  const std::int64_t stages = program.mesh.degree(MeshAxis::pipeline);
  const auto chunks = static_cast<std::int64_t>(program.chunks.size());
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
    std::vector<Instruction> lowered;
    lowered.reserve(3 * ranks.instructions.size() + 64);
    for (const Instruction& slot : ranks.instructions) surround(slot, stages, chunks, lowered);
    ranks.instructions = std::move(lowered);
  }
  return program;
}

}  // namespace orrery::models
