#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "models/lowering/layer_kinds.hpp"
#include "models/lowering/segments.hpp"
#include "models/operations/layouts.hpp"
#include "models/operations/listed.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/plan/precision_formats.hpp"
#include "models/schedules/schedule.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Adds a chunk's layers to a phase. Consecutive layers of one kind are one invocation.
void add_layers(const Program& program, const Chunk& chunk, bool up, Phase& phase) {
  for (std::int64_t i = 0; i < chunk.layers; ++i) {
    const std::int64_t layer = chunk.first_layer + (up ? i : chunk.layers - 1 - i);
    const LayerKind& kind = program.kinds[program.kind_of_layer[static_cast<std::size_t>(layer)]];
    const std::uint32_t block = up ? kind.forward : kind.backward;
    const bool goes_on = i > 0 && phase.invocations.back().block == block;
    if (goes_on) {
      ++phase.invocations.back().count;
    } else {
      phase.invocations.push_back({block, layer, 1});
    }
  }
}

/// Forward runs embedding, layers, head; backward the same in reverse order.
void add_phases(Program& program, Chunk& chunk) {
  const std::string suffix = ".c" + std::to_string(program.chunks.size());
  const LayerKind& embedding = program.kind(ModelPart::embedding);
  const LayerKind& head = program.kind(ModelPart::head);
  Phase forward{"forward" + suffix, {}}, backward{"backward" + suffix, {}};
  // A list of operations has neither.
  const auto has_blocks = [&](const LayerKind& end) {
    return !program.blocks[end.forward].operations.empty() ||
           !program.blocks[end.backward].operations.empty();
  };
  const bool embeds = chunk.has_embedding && has_blocks(embedding);
  const bool ends = chunk.has_head && has_blocks(head);
  if (embeds) forward.invocations.push_back({embedding.forward, -1, 1});
  add_layers(program, chunk, true, forward);
  if (ends) forward.invocations.push_back({head.forward, -1, 1});
  if (ends) backward.invocations.push_back({head.backward, -1, 1});
  add_layers(program, chunk, false, backward);
  if (embeds) backward.invocations.push_back({embedding.backward, -1, 1});
  chunk.forward = appended(program.phases, std::move(forward));
  chunk.backward = appended(program.phases, std::move(backward));
}

void add_chunks(Program& program, const BlockInputs& inputs,
                const std::vector<std::int64_t>& stages) {
  const std::vector<std::int64_t> layers = layers_per_chunk(inputs.plan, inputs.model);
  program.copies = static_cast<std::uint32_t>(stages.size() / layers.size());
  std::int64_t first = 0;
  for (std::size_t c = 0; c < stages.size(); ++c) {
    const std::int64_t stage = stages[c];
    const std::size_t part = c % layers.size();
    const auto before = stages.begin() + static_cast<std::ptrdiff_t>(c);
    if (part == 0) first = 0;
    Chunk chunk{.stage = stage,
                .place = static_cast<std::uint32_t>(std::count(stages.begin(), before, stage)),
                .copy = static_cast<std::uint32_t>(c / layers.size()),
                .first_layer = first,
                .layers = layers[part],
                .has_embedding = part == 0,
                .has_head = part + 1 == layers.size()};
    add_phases(program, chunk);
    program.chunks.push_back(chunk);
    first += layers[part];
  }
}

Instruction instruction_of(const ScheduleSlot& slot, const Chunk& chunk) {
  Instruction made{.chunk = slot.chunk, .micro_batch = slot.micro_batch};
  if (slot.kind == SlotKind::forward) {
    made.op = Opcode::forward;
    made.target = chunk.forward;
  } else if (slot.kind == SlotKind::backward) {
    made.op = Opcode::backward;
    made.target = chunk.backward;
  } else {
    made.op = Opcode::weight_gradient;  // its phase is made where backward is split
  }
  return made;
}

double flops_of(const Block& block) {
  return block.flops().count();
}

/// Costs of one layer of a kind; `kept` are the activations that outlive backward.
struct KindCosts {
  double forward = 0, backward = 0, weight_gradient = 0;  // FLOPs
  double saved = 0, kept = 0;                             // bytes
};

KindCosts costs_of(const Program& program, const LayerKind& kind) {
  const Block& forward = program.blocks[kind.forward];
  Block backward = program.blocks[kind.backward];
  KindCosts costs{.forward = flops_of(forward)};
  costs.saved = static_cast<double>(backward.bytes(Role::saved).count());
  Block weights;
  split_block(forward, backward, weights);
  costs.backward = flops_of(backward);
  costs.weight_gradient = flops_of(weights);
  const Bytes kept = weights.bytes(Role::saved) + weights.bytes(Role::delayed);
  costs.kept = static_cast<double>(kept.count());
  return costs;
}

/// Slot costs by counted FLOPs, before recomputation and collectives.
std::vector<SlotCosts> costs_of_chunks(const Program& program) {
  std::vector<KindCosts> kinds;
  for (const LayerKind& each : program.kinds) kinds.push_back(costs_of(program, each));
  std::vector<SlotCosts> all;
  for (const Chunk& chunk : program.chunks) {
    KindCosts sum;
    for (const Invocation& run : program.phases[chunk.forward].invocations) {
      const auto kind =
          static_cast<std::size_t>(program.use_of(run.block).kind - program.kinds.data());
      const auto count = static_cast<double>(run.count);
      sum.forward += count * kinds[kind].forward;
      sum.backward += count * kinds[kind].backward;
      sum.weight_gradient += count * kinds[kind].weight_gradient;
      sum.saved += count * kinds[kind].saved;
      sum.kept += count * kinds[kind].kept;
    }
    const double kept = sum.saved > 0 ? std::min(1.0, sum.kept / sum.saved) : 1;
    all.push_back({sum.forward, sum.backward, sum.weight_gradient, kept});
  }
  return all;
}

/// The slots of every stage, from a file or from the schedule that the plan names.
std::vector<Slots> slots_of(const Program& program, const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  if (!plan.stages.table.empty()) return plan.stages.table.slots;
  const Schedule& schedule = inputs.schedules->at(plan.stages.schedule);
  PipelineShape shape = plan.shape();
  if (schedule.all_stages != nullptr) shape.costs = costs_of_chunks(program);
  return slots_of(schedule, shape);
}

std::vector<std::int64_t> stages_of(const BlockInputs& inputs) {
  if (!inputs.plan.stages.table.empty()) return inputs.plan.stages.table.stages();
  return stages_of_chunks(inputs.schedules->at(inputs.plan.stages.schedule), inputs.plan.shape());
}

/// The head's weight gradients of the first `limit` micro-batches come last, while other stages
/// finish; those of later micro-batches right after their backward.
/// Source  Megatron-LM, ModelParallelConfig: defer_embedding_wgrad_compute, wgrad_deferral_limit
Slots with_deferred(const Program& program, const Slots& slots, std::int64_t limit) {
  Slots all, deferred;
  for (const ScheduleSlot& slot : slots) {
    all.push_back(slot);
    const bool of_head = slot.kind == SlotKind::backward && program.chunks[slot.chunk].has_head;
    if (!of_head) continue;
    ScheduleSlot later = slot;
    later.kind = SlotKind::weight_gradient;
    (std::ssize(deferred) < limit ? deferred : all).push_back(later);
  }
  all.insert(all.end(), deferred.begin(), deferred.end());
  return all;
}

void add_classes(Program& program, const Plan& plan, const std::vector<Slots>& all) {
  program.classes.resize(static_cast<std::size_t>(plan.pipeline));
  for (std::uint32_t c = 0; c < program.chunks.size(); ++c) {
    program.classes[static_cast<std::size_t>(program.chunks[c].stage)].chunks.push_back(c);
  }
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const Slots& own = all[static_cast<std::size_t>(stage)];
    const std::int64_t limit = plan.stages.deferred_head_gradients;
    const Slots deferring = limit > 0 ? with_deferred(program, own, limit) : Slots{};
    const Slots& slots = limit > 0 ? deferring : own;
    RankClass& ranks = program.classes[static_cast<std::size_t>(stage)];
    ranks.stage = stage;
    ranks.instructions.reserve(slots.size());
    for (const ScheduleSlot& slot : slots) {
      ranks.instructions.push_back(instruction_of(slot, program.chunks[slot.chunk]));
    }
  }
}

/// What a ZeRO stage shards. In a pipeline, micro-batches accumulate whole gradients, which are
/// reduce-scattered once, after the last of them.
/// Source  Jiang et al. 2024, "MegaScale", arXiv 2402.15627, section 3.2; torchtitan's pipelines,
///         which hold FSDP's reduction back until the last micro-batch
StateSharding sharding_of(const Program& program, const Plan& plan) {
  const AxisSet over = program.communicators[program.communicator(CommunicatorRole::data)].axes;
  const bool several = program.mesh.degree(over) > 1;
  const bool three = plan.sharding.zero == Zero::three;
  return {.optimizer = plan.sharding.zero != Zero::none,
          .gradients = several && plan.pipeline == 1 && (plan.sharding.zero == Zero::two || three),
          .parameters = several && three,
          .whole_matrices = plan.optimizer.kind == Optimizer::muon,
          .over = over,
          .optimizer_on_host = plan.offload.state != Offload::none,
          .parameters_on_host = plan.offload.state == Offload::parameters && several,
          .host_share = plan.offload.share,
          .in_files =
              plan.offload.state != Offload::none && plan.offload.device == OffloadDevice::nvme};
}

SequenceCut sequence_cut(const Plan& plan) {
  const bool balanced =
      context_split(plan).pieces > 1 && plan.context_exchange.form != ContextForm::contiguous;
  return balanced ? SequenceCut::early_and_late : SequenceCut::contiguous;
}

void state_facts(Program& program, const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  program.step = {.micro_batches = plan.micro_batches(),
                  .sequences = plan.batch.micro,
                  .seq_len = plan.batch.seq_len,
                  .source_len = inputs.model.encoder ? source_length(inputs.model) : 0,
                  .cut = sequence_cut(plan),
                  .documents = documents_of(plan)};
  program.formats = {
      .compute = multiplied_in(plan.formats.precision, inputs.software.runs.decodes_blocks),
      .storage = storage_dtype(plan.formats.precision),
      .gradient = gradient_dtype(plan, inputs.software),
      .state = state_dtype(plan.formats.precision),
      .master = master_dtype(plan)};
  program.sharding = sharding_of(program, plan);
  program.sharding.ahead = overlaps_gathers(inputs) && plan.sharding.prefetch > 0;
  program.graphs = plan.kernels.graphs;
  program.rank_order = plan.own_rank_order();
  if (plan.kernels.attention != AttentionKernel::of_stack) {
    program.attention = word_of(attention_kernel_words, plan.kernels.attention);
  }
  program.overlaps_data = plan.overlap.gradients;
  program.overlaps_gathers = plan.overlap.with_forward();
  program.overlaps_tensor = plan.overlap.tensor;
  if (plan.overlap.transfers) program.awaits_transfers = !*plan.overlap.transfers;
  program.vocabulary = inputs.model.embedding.vocab;
  program.ahead = ahead_of(inputs);
  program.inexact_feature = inexact_feature(inputs);
}

/// A table that the head, or prediction layers (MTP), share with the embedding is held once if both
/// are on one stage.
void place_table(Program& program, const Model& model, const std::vector<std::int64_t>& stages) {
  if (!model.embedding.tied && model.prediction_layers == 0) return;
  const bool together = stages.front() == stages.back();
  program.tied = together ? TiedTable::shared : TiedTable::copied;
  if (together) return;
  Communicator& tie = program.communicators[program.communicator(CommunicatorRole::tie)];
  tie.stages = {std::min(stages.front(), stages.back()), std::max(stages.front(), stages.back())};
}

/// Adds the communicators of a model with experts.
void add_expert_communicators(const Mesh& mesh, std::vector<Communicator>& all) {
  using Role = CommunicatorRole;
  all.push_back(
      {"etp", Role::expert_tensor, MeshAxis::expert_tensor, {}, Lane::tensor, TimeClass::tp});
  all.push_back({"ep", Role::expert, MeshAxis::expert, {}, Lane::tensor, TimeClass::ep});
  if (!experts_apart(mesh)) return;
  all.push_back({"edp", Role::expert_data, MeshAxis::expert_data, {}, Lane::data, TimeClass::dp});
}

}  // namespace

Program schedule_slots(const BlockInputs& inputs) {
  Program program;
  program.mesh = inputs.model.list ? listed_mesh(inputs) : mesh_of(inputs.plan);
  program.communicators = communicators_of(program.mesh);
  if (usual_experts(inputs.model).count > 0)
    add_expert_communicators(program.mesh, program.communicators);
  const std::vector<std::int64_t> stages = stages_of(inputs);
  state_facts(program, inputs);
  place_table(program, inputs.model, stages);
  add_kinds(program, inputs);
  add_units(program, inputs.plan);
  add_chunks(program, inputs, stages);
  add_classes(program, inputs.plan, slots_of(program, inputs));
  return program;
}

}  // namespace orrery::models
