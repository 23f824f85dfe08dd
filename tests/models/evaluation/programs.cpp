#include "tests/models/evaluation/programs.hpp"

#include <algorithm>
#include <utility>

#include "models/program/opcodes.hpp"

namespace orrery::models {

Block block_of(std::string name) {
  Block block;
  block.name = std::move(name);
  block.operands.push_back({.name = "x", .role = Role::input});
  block.operands.push_back({.name = "y", .role = Role::output});
  block.operands.push_back({.name = "t", .role = Role::temporary});
  return block;
}

Operation operation_on(Lane queue, std::vector<OpId> after, bool writes_output) {
  Operation op;
  op.queue = queue;
  op.after = std::move(after);
  op.writes = {writes_output ? formal_output : formal_temporary};
  return op;
}

void add_schedule(Program& program, const std::string& schedule, const PipelineShape& shape,
                  Mesh::Degrees degrees) {
  degrees.pipeline = shape.stages;
  program.mesh = Mesh{degrees};
  program.communicators = communicators_of(program.mesh);
  const std::int64_t chunks = shape.stages * shape.virtual_stages;
  for (std::int64_t c = 0; c < chunks; ++c) {
    program.chunks.push_back({.stage = c % shape.stages,
                              .place = static_cast<std::uint32_t>(c / shape.stages),
                              .forward = forward_phase(c),
                              .backward = backward_phase(c),
                              .has_embedding = c == 0,
                              .has_head = c + 1 == chunks});
  }
  program.step.micro_batches = shape.micro_batches;
  program.classes.resize(static_cast<std::size_t>(shape.stages));
  for (std::size_t stage = 0; stage < program.classes.size(); ++stage) {
    RankClass& ranks = program.classes[stage];
    ranks.stage = static_cast<std::int64_t>(stage);
    for (std::uint32_t c = 0; c < program.chunks.size(); ++c) {
      if (program.chunks[c].stage == ranks.stage) ranks.chunks.push_back(c);
    }
    std::vector<ScheduleSlot> slots;
    builtin_schedules().at(schedule).slots(shape, ranks.stage, slots);
    for (const ScheduleSlot& slot : slots) {
      const bool forward = slot.kind == SlotKind::forward;
      Instruction each;
      each.op = forward ? Opcode::forward : Opcode::backward;
      each.chunk = slot.chunk;
      each.micro_batch = slot.micro_batch;
      each.target = forward ? forward_phase(slot.chunk) : backward_phase(slot.chunk);
      ranks.instructions.push_back(each);
    }
  }
}

Case simple_pipeline(const std::string& schedule, const PipelineShape& shape, Time forward,
                     Time backward) {
  Case made;
  Program& program = *made.program;
  for (const char* each : {"forward", "backward"}) {
    Block block = block_of(each);
    block.operations.push_back(operation_on(Lane::compute, {block_input}, true));
    program.blocks.push_back(std::move(block));
  }
  for (std::int64_t chunk = 0; chunk < shape.stages * shape.virtual_stages; ++chunk) {
    program.phases.push_back({"forward", {{0, -1, 1}}});
    program.phases.push_back({"backward", {{1, -1, 1}}});
  }
  add_schedule(program, schedule, shape);
  program = name_tokens(insert_transfers(std::move(program)));
  made.priced.program = &program;
  made.priced.blocks = {{{Time{}, forward}}, {{Time{}, backward}}};
  made.priced.channels.resize(program.channels.size());
  return made;
}

void append_joint(Case& made, Opcode op, JointCollective joint, Time launch, Time duration) {
  Program& program = *made.program;
  Instruction each;
  each.op = op;
  each.target = static_cast<std::uint32_t>(program.collectives.size());
  for (const std::uint32_t c : joint.classes) {
    std::vector<Instruction>& list = program.classes[c].instructions;
    const auto last = std::find_if(list.rbegin(), list.rend(), runs_phase);
    each.input = last == list.rend() ? no_token : static_cast<Token>(list.rend() - last - 1);
    list.push_back(each);
  }
  program.collectives.push_back(std::move(joint));
  made.priced.collectives.push_back({launch, duration});
}

StepTimes unfolded(const StepTimes& folded, std::int64_t replicas) {
  StepTimes all;
  all.step = folded.step;
  const auto copies = static_cast<std::size_t>(replicas);
  for (const QueueTimes& each : folded.ranks) all.ranks.insert(all.ranks.end(), copies, each);
  for (const auto& each : folded.transfers) {
    all.transfers.insert(all.transfers.end(), copies, each);
  }
  for (const Time each : folded.collective_starts) {
    all.collective_starts.insert(all.collective_starts.end(), copies, each);
  }
  return all;
}

}  // namespace orrery::models
