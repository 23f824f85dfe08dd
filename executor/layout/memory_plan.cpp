#include "executor/layout/memory_plan.hpp"

#include <algorithm>
#include <optional>

#include "executor/errors.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::BufferKind;
using models::Instruction;
using models::no_binding;
using models::Opcode;

}  // namespace

MemoryPlan::MemoryPlan(const models::Program& program, std::int64_t stage, std::int64_t least,
                       std::size_t depth)
    : program_{program}, ranks_{program.classes[static_cast<std::size_t>(stage)]}, depth_{depth} {
  blocks_.resize(program.blocks.size());
  for (const models::LayerKind& kind : program.kinds) {
    const auto& weights = kind.weight_gradient;
    BlockPlans plans =
        plan_blocks(program.blocks[kind.forward], program.blocks[kind.backward],
                    weights ? &program.blocks[*weights] : nullptr, program.carried());
    blocks_[kind.forward] = std::move(plans.forward);
    blocks_[kind.backward] = std::move(plans.backward);
    if (weights) blocks_[*weights] = std::move(plans.weight_gradient);
  }
  for (const std::uint32_t chunk : ranks_.chunks) plan_chunk(program.chunks[chunk]);
  plan_workspace(least);
  walk();
}

std::size_t ChunkPlan::place_of(const models::LayerKind& kind, std::int64_t layer) const {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const LayerRoom& each) {
    return each.forward == kind.forward && each.layer == layer;
  });
  ensure(found != layers.end(), "a chunk runs a layer that it does not hold");
  return static_cast<std::size_t>(found - layers.begin());
}

void MemoryPlan::plan_chunk(const models::Chunk& chunk) {
  ChunkPlan plan;
  std::optional<std::int64_t> first_input;  // where the first block's input lies
  for (const models::Invocation& run : program_.phases[chunk.forward].invocations) {
    const BlockPlan& block = blocks_[run.block];
    const models::BlockUse use = program_.use_of(run.block);
    if (!first_input && !use.of(models::ModelPart::embedding)) {
      // Layers below the lowest adapters save no input. That is possible only where the input comes
      // from the embedding in the same chunk.
      if (block.arrival < 0 && !chunk.has_embedding) {
        throw RunFailure{Exit::invalid_program, "a block keeps no input for its backward"};
      }
      first_input = plan.bytes + block.arrival;
    }
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + i;
      plan.layers.push_back({run.block, layer, plan.bytes, plan.kept, plan.delayed, plan.on_host});
      plan.bytes += block.saved;
      plan.kept += block.kept;
      plan.delayed += block.delayed;
      plan.on_host += block.on_host;
    }
  }
  if (plan.layers.empty()) {
    throw RunFailure{Exit::invalid_program, "a chunk of the pipeline holds no layer"};
  }
  plan.arrival = first_input.value_or(0);
  plan.carried = plan.bytes;
  plan.bytes += carried_bytes(program_.carried());
  chunks_.push_back(std::move(plan));
}

std::int64_t MemoryPlan::delayed_arrival(const ChunkPlan& chunk, std::size_t place) const {
  const ChunkPlan::LayerRoom& layer = chunk.layers[place];
  const std::uint32_t backward = program_.use_of(layer.forward).kind->backward;
  const std::int64_t arrival = blocks_[backward].delayed_arrival;
  return arrival < 0 ? -1 : layer.delayed + arrival;
}

/// Bytes of the workspace that a phase uses: temporaries of its largest block and, in backward, the
/// edge buffers for gradients between layers, which are held through all parts of a cut backward.
std::int64_t MemoryPlan::workspace_of(const Instruction& each) const {
  std::int64_t largest = 0;
  for (const models::Invocation& run : program_.phases[each.target].invocations) {
    largest = std::max(largest, blocks_[run.block].workspace);
  }
  if (each.op != Opcode::backward) return largest;
  const ChunkPlan& plan = chunk(each.chunk);
  std::int64_t passes = 0;
  for (std::size_t place = 0; place + 1 < plan.layers.size(); ++place) {
    passes += delayed_arrival(plan, place) < 0 ? 1 : 0;
  }
  return largest + std::min<std::int64_t>(passes, 2) * edge_;
}

void MemoryPlan::plan_workspace(std::int64_t least) {
  edge_ = aligned(program_.activation_bytes.count());
  for (const BlockPlan& block : blocks_) workspace_ = std::max(workspace_, block.workspace);
  arena_ = workspace_ = std::max(workspace_ + temporaries(), aligned(least));
}

std::int64_t MemoryPlan::size_of(std::uint16_t type) const {
  for (std::size_t v = 0; v < ranks_.chunk_buffers.size(); ++v) {
    const models::ChunkBuffers& own = ranks_.chunk_buffers[v];
    const auto room = [](std::int64_t bytes) { return std::max<std::int64_t>(bytes, 64); };
    if (own.saved == type) return room(chunks_[v].bytes);
    if (!models::splits_backward(program_.chunks[ranks_.chunks[v]])) continue;
    if (own.kept == type) return room(chunks_[v].kept);
    if (own.delayed == type) return room(chunks_[v].delayed);
  }
  // A gathered bucket ends with the last owner's padding, less than one element for each owner; a
  // tied table splits a bucket into three.
  const std::int64_t buckets = program_.tied == models::TiedTable::copied ? 3 : 1;
  const std::int64_t padding =
      program_.sharding.parameters ? buckets * program_.most_shards() * 8 : 0;
  return aligned(ranks_.types[type].bytes.count() + padding);
}

std::int64_t MemoryPlan::lowest_gap(std::int64_t bytes) const {
  std::int64_t at = workspace_;
  for (const Live& each : live_) {
    if (at + bytes <= each.offset) break;
    at = std::max(at, each.offset + each.bytes);
  }
  return at;
}

/// The buffer's offset: the one that it has, or a new one; then sends that still read the memory
/// there are noted in `reuses_`.
std::int64_t MemoryPlan::bind(std::uint32_t i, std::uint16_t type, std::uint32_t index) {
  for (const Live& each : live_) {
    if (each.type == type && each.index == index) return each.offset;
  }
  const std::int64_t bytes = size_of(type);
  const std::int64_t at = lowest_gap(bytes);
  const auto above =
      std::find_if(live_.begin(), live_.end(), [&](const Live& each) { return each.offset > at; });
  live_.insert(above, {type, index, at, bytes, ranks_.types[type].kind});
  arena_ = std::max(arena_, at + bytes);
  changes_.push_back({i, false, ranks_.types[type].kind, bytes, at});
  const auto overlaps = [&](const Leaving& each) {
    return each.offset < at + bytes && at < each.offset + each.bytes;
  };
  for (const Leaving& each : leaving_) {
    if (overlaps(each)) reuses_.push_back({i, each.send});
  }
  leaving_.erase(std::remove_if(leaving_.begin(), leaving_.end(), overlaps), leaving_.end());
  return at;
}

std::vector<MemoryPlan::Live>::iterator MemoryPlan::find(std::uint32_t type, std::uint32_t index) {
  const auto held = std::find_if(live_.begin(), live_.end(), [&](const Live& each) {
    return each.type == type && each.index == index;
  });
  ensure(held != live_.end(), "a buffer is freed that is not bound");
  return held;
}

void MemoryPlan::free(std::uint32_t i, std::uint32_t type, std::uint32_t index) {
  const auto held = find(type, index);
  changes_.push_back({i, true, held->kind, -held->bytes, held->offset});
  live_.erase(held);
}

/// The Program frees this sent buffer; its memory is freed after `depth_` further sends.
void MemoryPlan::keep_sent(std::uint32_t i, std::uint16_t type, std::uint32_t index) {
  const auto held = find(type, index);
  held->type = sent;
  held->index = i;
  std::deque<std::uint32_t>& later = pending_sends_[ranks_.instructions[i].target];
  later.push_back(i);
  if (later.size() <= depth_) return;
  release_send(i, later.front());
  later.pop_front();
}

/// Frees the memory of a send; the instruction that binds it next waits for the transfer.
void MemoryPlan::release_send(std::uint32_t i, std::uint32_t send) {
  const auto held = find(sent, send);
  leaving_.push_back({send, held->offset, held->bytes});
  free(i, sent, send);
}

/// Which of the slots saved, kept and delayed an instruction uses; they share one index.
unsigned MemoryPlan::held_slots(const Instruction& each) const {
  const unsigned saved = models::bit(models::slot_saved);
  const bool of_chunk =
      each.op == Opcode::forward || models::descends(each) || each.op == Opcode::receive;
  if (!of_chunk || !models::splits_backward(program_.chunks[each.chunk])) return saved;
  const unsigned kept = models::bit(models::slot_kept), delayed = models::bit(models::slot_delayed);
  switch (each.op) {
    case Opcode::forward:
      return saved | kept;
    case Opcode::backward:
      return saved | kept | delayed;
    case Opcode::weight_gradient:
      return kept | delayed;
    case Opcode::receive:
      return models::bit(models::receive_slot(program_, each));
    default:
      return saved;
  }
}

void MemoryPlan::step(std::uint32_t i) {
  const Instruction& each = ranks_.instructions[i];
  const bool fills = (each.binds & models::bit(models::slot_weights)) != 0;
  const auto place = [&](models::Slot slot, std::int64_t& at) {
    const std::uint32_t index = each.bindings[models::index_of(slot)];
    if (index == no_binding) return;
    const models::Slot of = fills ? models::slot_weights : slot;
    at = bind(i, models::buffer_type(program_, ranks_, each, of), index);
  };
  const unsigned held = held_slots(each);
  if ((held & models::bit(models::slot_saved)) != 0) place(models::slot_saved, bound_[i].saved);
  place(models::slot_in, bound_[i].in);
  place(models::slot_out, bound_[i].out);
  const std::uint32_t saved = each.bindings[models::index_of(models::slot_saved)];
  if (each.op == Opcode::forward || each.op == Opcode::backward) {
    const std::int64_t bytes = chunk(each.chunk).on_host;  // of the only chunk that has any
    bound_[i].on_host = saved * bytes;
    on_host_ = std::max(on_host_, (saved + 1) * bytes);
  }
  if ((held & models::bit(models::slot_kept)) != 0) place(models::slot_kept, bound_[i].kept);
  if ((held & models::bit(models::slot_delayed)) != 0) {
    place(models::slot_delayed, bound_[i].delayed);
  }
  if (each.op == Opcode::forward || models::descends(each)) {
    const std::int64_t bytes = workspace_of(each);
    changes_.push_back({i, false, BufferKind::workspace, bytes, 0});
    changes_.push_back({i, true, BufferKind::workspace, -bytes, 0});
  }
  for (int slot = 0; slot < models::slot_count; ++slot) {
    if ((each.frees & (1U << slot)) != 0) release(i, static_cast<models::Slot>(slot));
  }
}

void MemoryPlan::release(std::uint32_t i, models::Slot slot) {
  const Instruction& each = ranks_.instructions[i];
  if (slot == models::slot_weights) {
    models::Token gather = models::first_gather(program_, ranks_, each.awaits);
    for (; gather <= each.awaits; ++gather) {
      const Instruction& filled = ranks_.instructions[gather];
      free(i, models::buffer_type(program_, ranks_, filled, slot),
           filled.bindings[models::slot_filled]);
    }
    return;
  }
  const std::uint16_t type = models::buffer_type(program_, ranks_, each, slot);
  const std::uint32_t index = each.bindings[models::index_of(slot)];
  each.op == Opcode::send ? keep_sent(i, type, index) : free(i, type, index);
}

void MemoryPlan::walk() {
  bound_.resize(ranks_.instructions.size());
  const auto count = static_cast<std::uint32_t>(ranks_.instructions.size());
  for (std::uint32_t i = 0; i < count; ++i) step(i);
  for (const auto& [channel, sends] : pending_sends_) {
    for (const std::uint32_t send : sends) release_send(count - 1, send);
  }
}

}  // namespace orrery::executor
