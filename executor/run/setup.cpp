// Before the first step: what is refused, and where memory lies.

#include <fmt/format.h>

#include <algorithm>

#include "executor/errors.hpp"
#include "executor/run/interpreter.hpp"
#include "executor/run/refusals.hpp"
#include "executor/run/send_depth.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::DType;
using models::Program;

const Program& accepted(const Program& program, const models::Software& software,
                        const Device& device, const Fabric& fabric) {
  if (fabric.ranks() != program.mesh.ranks()) {
    throw RunFailure{Exit::invalid_program, fmt::format("the program is for {} ranks, here are {}",
                                                        program.mesh.ranks(), fabric.ranks())};
  }
  const std::string why = refusal(program, software, device);
  if (!why.empty()) throw RunFailure{Exit::invalid_program, "cannot execute " + why};
  models::check(program);
  return program;
}

/// Where a rank's rows and its shard of the vocabulary begin.
Place place_of(const Program& program, std::int64_t rank) {
  const models::Block& embedding =
      program.blocks[program.kind(models::ModelPart::embedding).forward];
  Place place{.sequence = program.step.seq_len};
  const auto begin = [&](const models::Operand& of) {
    return shard_of(rank, of.sharding, models::Dimension::rows, program.mesh) * of.shape[1];
  };
  for (const models::Operation& op : embedding.operations) {
    if (op.kind == models::OpKind::embedding) {
      place.first_vocabulary = begin(embedding.operands[op.reads[1]]);
    }
  }
  for (const models::Operand& each : embedding.operands) {
    if (each.role == models::Role::output) place.first_row = begin(each);
  }
  return place;
}

/// Of the head's forward: what the loss's backward reads of every shard.
std::int64_t statistics_of(const Program& program, const models::LayerKind& head) {
  const models::Block& backward = program.blocks[head.backward];
  for (const models::Operation& op : backward.operations) {
    if (op.kind != models::OpKind::cross_entropy_backward) continue;
    const auto id = program.blocks[head.forward].find(backward.operands[op.reads[2]].name);
    ensure(id.has_value(), "a loss keeps no statistics");
    return *id;
  }
  throw ContractError{"a head has no loss"};
}

}  // namespace

Runner::Interpreter::Interpreter(const Program& program, const models::Software& software,
                                 Device& device, Fabric& fabric, RunSettings settings)
    : program_{accepted(program, software, device, fabric)},
      device_{device},
      fabric_{fabric},
      settings_{std::move(settings)},
      rank_{fabric.rank()},
      stage_{program.mesh.stage_of(rank_)},
      tensor_{program.mesh.coordinate(rank_, models::MeshAxis::tensor)},
      data_{program.mesh.coordinate(rank_, models::MeshAxis::data)},
      ranks_{program.classes[static_cast<std::size_t>(stage_)]},
      layout_{program, rank_},
      plan_{program, stage_, addend_bytes(), send_depth(program)},
      blocks_{plan_.blocks()},
      captured_{program, device},
      groups_{make_groups(program, fabric)},
      recording_{program, rank_, recordable(settings_.trace, program.graphs)} {
  if (settings_.tokens == nullptr) {
    own_tokens_ = synthetic_tokens(settings_.seed, program.vocabulary);
    settings_.tokens = own_tokens_.get();
  }
  storage_ = program.formats.storage;
  gradient_ = program.formats.gradient;
  state_ = program.formats.state;
  separate_master_ = storage_ != state_;
  ensure(settings_.arithmetic == Arithmetic::real || width_of(storage_) == 8,
         "the ring needs precision fp64");
  place_ = place_of(program, rank_);
  mean_ = 1.0 / static_cast<double>(program.step.micro_batches * program.step.tokens() *
                                    program.mesh.degree(models::MeshAxis::data));
  const bool vanishing = storage_ == DType::fp16;
  if (settings_.loss_scale) {
    scale_ = LossScale{*settings_.loss_scale};
  } else if (vanishing) {
    scale_ = LossScale{first_loss_scale};
  }
  shards_weights_ = program.sharding.parameters;
  shards_sums_ = program.sharding.gradients;
  accumulate_.kind = models::OpKind::accumulate;
  accumulate_.dtype = gradient_;
  narrow_.kind = models::OpKind::cast;
  narrow_.name = "working copy";
  narrow_.dtype = storage_;
  bind_ends();
  allocate();
  draw_parameters();
}

/// Bytes of what the tensor group sums before the norm, side by side.
std::int64_t Runner::Interpreter::addend_bytes() const {
  std::int64_t elements = 0;
  for (const Span& each : layout_.partial_sums()) elements += each.count;
  return elements * 8;
}

/// Parameters of embedding and head lie where the layout says; those of a layer in a row.
void Runner::Interpreter::bind_ends() {
  layer_base_.assign(program_.kind_of_layer.size(), 0);
  for (const std::uint32_t chunk : ranks_.chunks) {
    for (const models::Invocation& run :
         program_.phases[program_.chunks[chunk].forward].invocations) {
      const models::LayerKind& kind = *program_.use_of(run.block).kind;
      if (kind.part == models::ModelPart::layer) {
        const models::Block& forward = program_.blocks[kind.forward];
        const auto first = std::find_if(
            forward.operands.begin(), forward.operands.end(),
            [](const models::Operand& each) { return each.role == models::Role::parameter; });
        for (std::int64_t i = 0; i < run.count; ++i) {
          const std::int64_t layer = run.first_layer + i;
          layer_base_[static_cast<std::size_t>(layer)] = layout_.offset(layer, first->tensor);
        }
        continue;
      }
      bind_parameters(kind.forward);
      bind_parameters(kind.backward);
      if (kind.part == models::ModelPart::head) statistics_operand_ = statistics_of(program_, kind);
    }
  }
}

void Runner::Interpreter::bind_parameters(std::uint32_t block) {
  for (std::size_t id = 0; id < program_.blocks[block].operands.size(); ++id) {
    const models::Operand& each = program_.blocks[block].operands[id];
    const bool bound = each.role == models::Role::gradient || each.role == models::Role::parameter;
    if (bound) blocks_[block].sources[id].offset = layout_.offset(-1, each.tensor);
  }
}

void Runner::Interpreter::allocate() {
  const auto held = [this](bool sharded) { return sharded ? layout_.owned() : layout_.elements(); };
  parameters_ = {device_, held(shards_weights_) * width_of(storage_)};
  gradients_ = {device_, held(shards_sums_) * width_of(gradient_)};
  optimizer_ = {device_, layout_.owned() * width_of(state_) * (separate_master_ ? 3 : 2)};
  arena_ = {device_, plan_.arena()};
  const bool embeds = program_.chunks[ranks_.chunks.front()].embeds;
  const bool predicts = statistics_operand_ >= 0;
  // Tokens and labels of every micro-batch.
  const std::int64_t tokens = program_.step.micro_batches * program_.step.tokens() * 8;
  if (embeds || predicts) batch_ = {device_, 2 * tokens};
  if (predicts) {
    const View& of = statistics_view();
    statistics_ = {device_, program_.step.micro_batches * of.elements() * width_of(of.dtype)};
  }
  scalars_ = {device_, 64};
  for (const DeviceMemory* each : {&parameters_, &gradients_, &optimizer_}) {
    device_.zero(each->data(), each->bytes());
  }
  std::size_t operands = 0;
  for (const BlockPlan& each : blocks_) operands = std::max(operands, each.views.size());
  views_.resize(operands);

  const auto at = [&](models::BufferKind kind) -> Bytes& {
    return held_[static_cast<std::size_t>(kind)];
  };
  at(models::BufferKind::parameter) = parameters_.bytes();
  if (shards_sums_) allocate_buckets();
  allocate_compressed();
  at(models::BufferKind::gradient) += gradients_.bytes() + buckets_.bytes();
  at(models::BufferKind::optimizer) += optimizer_.bytes();
  at(models::BufferKind::staging) += batch_.bytes() + statistics_.bytes() + scalars_.bytes();
  memory_.allocated = models::total(held_) + arena_.bytes();
  if (settings_.freed == Freed::poisoned) poison(0, plan_.arena());
  device_.finish();  // what is written next is not cleared after it
}

/// What backward fills and reductions empty, with room for the last owner's padding.
void Runner::Interpreter::allocate_buckets() {
  std::int64_t bytes = 0;
  for (const models::PersistentBuffer& each : ranks_.persistent) {
    if (!each.bucket) continue;
    bucket_offsets_.push_back(bytes);
    bytes += aligned(each.bytes.count() + program_.shards() * width_of(gradient_));
  }
  buckets_ = {device_, bytes};
  device_.zero(buckets_.data(), buckets_.bytes());
  filled_at_.assign(layout_.buckets().size(), nullptr);
  weights_at_.assign(layout_.buckets().size(), nullptr);
  // A tied head adds to the embedding's bucket before its turn comes.
  for (auto each = ranks_.instructions.rbegin(); each != ranks_.instructions.rend(); ++each) {
    if (each->op != models::Opcode::reduce_gradient) continue;
    const std::size_t buffer = program_.collectives[each->target].buffer;
    filled_at_[layout_.reduced(each->target).first] = buckets_.data() + bucket_offsets_[buffer];
  }
}

/// The reduction for which a compression makes its input, or whose sum a decompression awaits.
std::uint32_t Runner::Interpreter::compressed_for(std::uint32_t i) const {
  const std::vector<Instruction>& list = ranks_.instructions;
  if (list[i].awaits != models::no_token) return list[list[i].awaits].target;
  const auto reduction = std::find_if(list.begin() + i, list.end(),
                                      [&](const Instruction& each) { return each.input == i; });
  ensure(reduction != list.end(), "a compressed bucket is not reduced");
  return reduction->target;
}

/// What a phase that compresses or decompresses works in, but for the bucket itself.
void Runner::Interpreter::allocate_parts(const models::Block& block, Compressed& of) {
  for (const models::Operand& each : block.operands) {
    if (each.role == models::Role::gradient) continue;
    if (each.role == models::Role::input && of.in_place) {
      of.received = of.sent;
      continue;
    }
    DeviceMemory memory{device_, aligned(each.bytes().count())};
    device_.zero(memory.data(), memory.bytes());
    const bool residual = each.role == models::Role::optimizer;
    if (residual) {
      of.residual = memory.data();
    } else {
      (each.role == models::Role::output ? of.sent : of.received).push_back(memory.data());
    }
    const auto kind = residual ? models::BufferKind::optimizer : models::BufferKind::staging;
    held_[static_cast<std::size_t>(kind)] += memory.bytes();
    compressed_memory_.push_back(std::move(memory));
  }
}

/// Each bucket's part of the buffers that compression works in, and which instruction uses which.
void Runner::Interpreter::allocate_compressed() {
  std::map<std::size_t, Compressed> made;
  for (std::uint32_t i = 0; i < ranks_.instructions.size(); ++i) {
    const Instruction& each = ranks_.instructions[i];
    if (each.op != models::Opcode::compress) continue;
    const std::uint32_t target = compressed_for(i);
    Compressed& of = made[layout_.reduced(target).first];
    of.bucket = layout_.reduced(target).first;
    of.in_place = program_.collectives[target].kind == models::Collective::all_reduce;
    allocate_parts(program_.blocks[program_.phases[each.target].invocations.front().block], of);
  }
  // Both directions and the reductions between them see all parts.
  for (std::uint32_t i = 0; i < ranks_.instructions.size(); ++i) {
    const Instruction& each = ranks_.instructions[i];
    if (made.empty()) break;
    std::uint32_t target = each.target;
    if (each.op == models::Opcode::compress) {
      target = compressed_for(i);
    } else if (each.op != models::Opcode::reduce_gradient) {
      continue;
    }
    compressed_[i] = made.at(layout_.reduced(target).first);
  }
}

}  // namespace orrery::executor
