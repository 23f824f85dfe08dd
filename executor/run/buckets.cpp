// Gradients on their way between data ranks: buckets reduced, compressed, added to the sums that a
// rank owns; and weights on their way back (ZeRO-3).

#include <algorithm>
#include <array>

#include "executor/run/interpreter.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::Lane;

/// The tensor of the first parameter: its bucket is that of them all.
const std::string& first_parameter(const models::Program& program, const models::LayerKind& kind) {
  const auto& operands = program.blocks[kind.forward].operands;
  const auto first = std::find_if(
      operands.begin(), operands.end(),
      [](const models::Operand& each) { return each.role == models::Role::parameter; });
  ensure(first != operands.end(), "a unit without parameters is gathered");
  return first->tensor;
}

}  // namespace

std::byte* Runner::Interpreter::weight_at(std::int64_t element) const {
  if (!shards_weights_) return parameters_.data() + element * width_of(storage_);
  const std::size_t bucket = layout_.bucket_at(element);
  return weights_at_[bucket] + (element - layout_.buckets()[bucket].first) * width_of(storage_);
}

std::byte* Runner::Interpreter::gradient_at(std::int64_t element) const {
  if (!shards_sums_) return gradients_.data() + element * width_of(gradient_);
  const std::size_t bucket = layout_.bucket_at(element);
  return filled_at_[bucket] + (element - layout_.buckets()[bucket].first) * width_of(gradient_);
}

/// One bucket, or its parts around a tied table.
void Runner::Interpreter::reduce(std::uint32_t i) {
  const std::uint32_t target = ranks_.instructions[i].target;
  const models::JointCollective& joint = program_.collectives[target];
  const auto [first, last] = layout_.reduced(target);
  if (!compressed_.empty()) return reduce_compressed(i, first);
  const std::size_t entry = begin_joint(i);
  for (std::size_t b = first; b < last; ++b) {
    const Bucket& bucket = layout_.buckets()[b];
    CollectiveCall call;
    call.kind = joint.kind;
    call.element = element(gradient_);
    call.send = call.receive = gradient_at(bucket.first);
    call.count = bucket.count;
    if (joint.kind == Collective::reduce_scatter) {
      call.count = bucket.piece;
      call.receive = gradient_at(layout_.piece_of(bucket));
    }
    collective(i, joint.communicator, call, entry);
  }
}

/// The collective on a bucket's narrow copy, of its largest values, or of their places.
void Runner::Interpreter::reduce_compressed(std::uint32_t i, std::size_t bucket) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  const Compressed& of = compressed_.at(i);
  const std::size_t entry = begin_joint(i);
  CollectiveCall call;
  call.kind = joint.kind;
  call.send = of.sent.at(joint.part);
  call.receive = of.received.at(joint.part);
  if (of.in_place) {
    call.count = layout_.buckets()[bucket].count;
    call.element = Element::fp16;
  } else {
    call.count = joint.bytes.count() / program_.mesh.degree(models::MeshAxis::data);
    call.element = Element::byte;
  }
  collective(i, joint.communicator, call, entry);
}

/// Of a phase that compresses or decompresses a bucket.
std::vector<View> Runner::Interpreter::views_of(const models::Block& block,
                                                const Compressed& of) const {
  std::vector<View> views;
  std::size_t sent = 0, received = 0;
  for (const models::Operand& each : block.operands) {
    std::byte* at = of.residual;
    if (each.role == models::Role::gradient) at = gradient_at(layout_.buckets()[of.bucket].first);
    if (each.role == models::Role::output) at = of.sent.at(sent++);
    if (each.role == models::Role::input) at = of.received.at(received++);
    views.push_back({at, each.dtype, each.shape});
  }
  return views;
}

/// Runs a phase on one bucket: what compresses it, or undoes that.
void Runner::Interpreter::compress(std::uint32_t i) {
  const Instruction& each = ranks_.instructions[i];
  if (each.awaits != models::no_token) await(each.awaits);
  const Compressed& of = compressed_.at(i);
  const std::uint32_t id = program_.phases[each.target].invocations.front().block;
  const models::Block& block = program_.blocks[id];
  const std::vector<View> views = views_of(block, of);
  for (std::size_t op = 0; op < block.operations.size(); ++op) {
    const models::Operation& operation = block.operations[op];
    std::vector<View> reads, writes;
    for (const models::OperandId operand : operation.reads) reads.push_back(views[operand]);
    for (const models::OperandId operand : operation.writes) writes.push_back(views[operand]);
    Kernel kernel;
    kernel.operation = &operation;
    kernel.reads = reads;
    kernel.writes = writes;
    std::size_t entry = not_recorded;
    if (recording_.operations()) {
      entry = recording_.add(i, device_.mark(operation.queue), id, -1, op);
    } else if (recording_.instructions()) {
      entry = recording_.add(i, device_.mark(operation.queue));
    }
    device_.run(kernel);
    if (entry != not_recorded) recording_.end(entry, device_.mark(operation.queue));
  }
}

/// The buffer that a part of backward fills is the one that the next reduction empties; a tied
/// embedding's is its own. What is still on its way out of it must have left.
void Runner::Interpreter::fill_next_bucket(std::uint32_t i) {
  for (std::size_t next = i + 1; next < ranks_.instructions.size(); ++next) {
    const Instruction& each = ranks_.instructions[next];
    if (each.op != models::Opcode::reduce_gradient) continue;
    const std::size_t buffer = program_.collectives[each.target].buffer;
    filled_at_[layout_.reduced(each.target).first] = buckets_.data() + bucket_offsets_[buffer];
    break;
  }
  const Instruction& part = ranks_.instructions[i];
  for (const models::Invocation& run : program_.phases[part.target].invocations) {
    const std::vector<BlockPlan::Source>& sources = blocks_[run.block].sources;
    for (const BlockPlan::Source& source : sources) {
      if (source.base != Base::gradient) continue;
      const bool of_layer = run.first_layer >= 0;
      const std::int64_t base =
          of_layer ? layer_base_[static_cast<std::size_t>(run.first_layer)] : 0;
      wait_until_empty(filled_at_[layout_.bucket_at(base + source.offset)]);
    }
  }
}

void Runner::Interpreter::wait_until_empty(const std::byte* bucket) {
  for (auto each = data_pending_.rbegin(); each != data_pending_.rend(); ++each) {
    if (each->filled == bucket) return await(each->instruction);
  }
}

/// After a reduction of ZeRO-2 and 3 the owned piece is added to the sums, and the bucket is
/// cleared for what fills it next.
void Runner::Interpreter::add_to_sums(const PendingCall& pending) {
  const std::uint32_t target = ranks_.instructions[pending.instruction].target;
  const Bucket& bucket = layout_.buckets()[layout_.reduced(target).first];
  const std::int64_t piece = (layout_.piece_of(bucket) - bucket.first) * width_of(gradient_);
  const std::array<std::int64_t, 3> shape{1, 1, bucket.piece};
  const View fresh{pending.filled + piece, gradient_, shape};
  const View sum{gradients_.data() + bucket.owned * width_of(gradient_), gradient_, shape};
  const std::array<View, 2> reads{fresh, sum};
  Kernel kernel;
  kernel.operation = &accumulate_;
  kernel.reads = reads;
  kernel.writes = {&sum, 1};
  device_.run(kernel);
  device_.zero(pending.filled, Bytes{bucket.padded * width_of(gradient_)});
}

/// One unit's weights from their owners (ZeRO-3).
void Runner::Interpreter::unshard(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  const models::Unit& unit = program_.units[joint.first_unit];
  const models::LayerKind& kind = program_.kinds[unit.kinds.front()];
  const std::int64_t element = unit.layer >= 0
                                   ? layer_base_[static_cast<std::size_t>(unit.layer)]
                                   : layout_.offset(-1, first_parameter(program_, kind));
  const std::size_t number = layout_.bucket_at(element);
  const Bucket& bucket = layout_.buckets()[number];
  weights_at_[number] = arena_.data() + plan_.bound(i).saved;
  CollectiveCall call;
  call.kind = Collective::all_gather;
  call.send = parameters_.data() + bucket.owned * width_of(storage_);
  call.receive = weights_at_[number];
  call.count = bucket.piece;
  call.element = Interpreter::element(storage_);
  const std::size_t entry = begin_joint(i);
  collective(i, joint.communicator, call, entry);
}

}  // namespace orrery::executor
