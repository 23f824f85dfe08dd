#include <string>

#include "models/lowering/lower.hpp"
#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

std::vector<Communicator> communicators_of(const Plan& plan) {
  const std::vector<MeshAxis> pipe{MeshAxis::pipeline};
  return {{"tp", {MeshAxis::tensor}, {}},
          {"dp", {MeshAxis::data}, {}},
          {"pp_f", pipe, {}},
          {"pp_b", pipe, {}},
          {"model", {MeshAxis::tensor, MeshAxis::pipeline}, {}},
          {"world", {MeshAxis::tensor, MeshAxis::data, MeshAxis::pipeline}, {}},
          {"tie", pipe, {0, plan.pipeline - 1}}};
}

/// Forward runs embedding, layers up, head; backward the same backwards.
void add_phases(Program& program, std::int64_t chunk, std::int64_t first, std::int64_t layers) {
  const bool begins = chunk == 0;
  const bool ends = chunk == program.plan.chunks() - 1;
  const std::string suffix = ".c" + std::to_string(chunk);
  Phase forward{"forward" + suffix, {}}, backward{"backward" + suffix, {}};
  if (begins) forward.invocations.push_back({embedding_forward, -1, 1});
  if (layers > 0) forward.invocations.push_back({layer_forward, first, layers});
  if (ends) {
    forward.invocations.push_back({head_forward, -1, 1});
    backward.invocations.push_back({head_backward, -1, 1});
  }
  if (layers > 0) backward.invocations.push_back({layer_backward, first + layers - 1, layers});
  if (begins) backward.invocations.push_back({embedding_backward, -1, 1});
  program.phases.push_back(std::move(forward));
  program.phases.push_back(std::move(backward));
}

void add_classes(Program& program) {
  const Plan& plan = program.plan;
  const Schedule schedule = builtin_schedules().at(plan.schedule);
  const PipelineShape shape{plan.pipeline, plan.virtual_stages, plan.micro_batches()};
  const auto slots = static_cast<std::size_t>(2 * shape.virtual_stages * shape.micro_batches);
  program.classes.resize(static_cast<std::size_t>(plan.pipeline));
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    RankClass& ranks = program.classes[static_cast<std::size_t>(stage)];
    ranks.stage = stage;
    ranks.instructions.reserve(slots);
    schedule(shape, stage, ranks.instructions);
    for (Instruction& slot : ranks.instructions) {
      slot.target =
          slot.op == Opcode::forward ? forward_phase(slot.chunk) : backward_phase(slot.chunk);
    }
  }
}

}  // namespace

Program schedule_slots(const BlockInputs& inputs) {
  Program program;
  program.model = inputs.model;
  program.plan = inputs.plan;
  program.mesh = {inputs.plan.tensor, inputs.plan.data, inputs.plan.pipeline};
  program.communicators = communicators_of(inputs.plan);
  for (BlockPair pair : {layer_blocks(inputs), embedding_blocks(inputs), head_blocks(inputs)}) {
    program.blocks.push_back(std::move(pair.forward));
    program.blocks.push_back(std::move(pair.backward));
  }
  const std::vector<std::int64_t> layers = layers_per_chunk(inputs.plan, inputs.model);
  std::int64_t first = 0;
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    add_phases(program, static_cast<std::int64_t>(chunk), first, layers[chunk]);
    first += layers[chunk];
  }
  add_classes(program);
  return program;
}

Program lower(const BlockInputs& inputs) {
  Program program = schedule_slots(inputs);
  program = insert_recompute(std::move(program));
  program = insert_tensor_collectives(std::move(program), inputs.software.overlap.tensor_backward,
                                      inputs.software.gathered);
  program = insert_host_waits(std::move(program), inputs.software);
  program = insert_transfers(std::move(program));
  program = insert_gradient_reduction(std::move(program), inputs);
  program = insert_shards(std::move(program), inputs.software);
  program = insert_optimizer(std::move(program), inputs);
  return bind_buffers(std::move(program), inputs.software);
}

}  // namespace orrery::models
