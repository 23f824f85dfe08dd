// What ranks do together between blocks: transfers, reductions, the norm and the update.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/errors.hpp"
#include "executor/interpreter.hpp"
#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::DType;
using models::Queue;

}  // namespace

Element Runner::Interpreter::element(DType type) const {
  if (settings_.arithmetic == Arithmetic::ring) return Element::ring;
  switch (type) {
    case DType::fp16:
      return Element::fp16;
    case DType::bf16:
      return Element::bf16;
    case DType::fp64:
      return Element::fp64;
    case DType::fp32:
    case DType::tf32:
      return Element::fp32;
    default:
      return Element::byte;
  }
}

/// What the other ranks are given has been computed.
void Runner::Interpreter::before_call(Queue queue) {
  if (!device_.synchronous()) device_.wait(queue, device_.mark(Queue::compute));
}

/// The host waits where the fabric needs it; the compute queue goes on behind the call's queue.
void Runner::Interpreter::wait(Pending& pending) {
  at_.peer.store(pending.peer, std::memory_order_relaxed);
  at_.communicator.store(pending.peer < 0 ? pending.communicator : -1, std::memory_order_relaxed);
  fabric_.wait(pending.request);
  at_.peer.store(-1, std::memory_order_relaxed);
  at_.communicator.store(-1, std::memory_order_relaxed);
  if (!device_.synchronous()) {
    device_.wait(Queue::compute, device_.mark(pending.queue));
  } else if (pending.entry != not_recorded && recording_.instructions()) {
    recording_.end(pending.entry, device_.mark(pending.queue));
  }
  if (pending.filled != nullptr) add_to_sums(pending);
}

/// Joint collectives end in the order in which they began.
void Runner::Interpreter::await(std::uint32_t collective) {
  const auto found = std::find_if(data_pending_.rbegin(), data_pending_.rend(),
                                  [&](const Pending& each) { return each.target == collective; });
  const auto end = found.base();
  for (auto each = data_pending_.begin(); each != end; ++each) wait(*each);
  data_pending_.erase(data_pending_.begin(), end);
}

void Runner::Interpreter::wait_for_data() {
  for (Pending& each : data_pending_) wait(each);
  data_pending_.clear();
}
void Runner::Interpreter::wait_for_sends() {
  for (Pending& each : sends_) wait(each);
  sends_.clear();
}
void Runner::Interpreter::wait_for_arrivals() {
  for (Pending& each : arrivals_) wait(each);
  arrivals_.clear();
}

/// Fabrics that cannot progress by themselves do so here; what is done is noted as it ends.
void Runner::Interpreter::poll() {
  if (data_pending_.empty() || !device_.synchronous()) return;
  if (!fabric_.test(data_pending_.front().request)) return;
  wait(data_pending_.front());
  data_pending_.erase(data_pending_.begin());
}

void Runner::Interpreter::collective(std::uint32_t i, std::uint16_t communicator,
                                     CollectiveCall call, std::size_t entry) {
  const Group& group = groups_[communicator];
  ensure(group.index >= 0, "a rank takes part in a collective of a group that it is not in");
  if (group.alone()) {
    if (call.send != call.receive) {
      device_.copy(call.send, call.receive, Bytes{call.count * size_of(call.element)},
                   Queue::compute);
    }
    return;
  }
  call.group = group.id;
  call.queue = Queue::data;
  before_call(Queue::data);
  Pending pending;
  pending.entry = entry;
  pending.instruction = i;
  pending.communicator = communicator;
  if (i < ranks_.instructions.size()) {
    const Instruction& each = ranks_.instructions[i];
    if (models::is_joint(each.op)) pending.target = each.target;
    const bool empties = shards_sums_ && each.op == models::Opcode::reduce_gradient;
    if (empties) pending.filled = filled_at_[layout_.reduced(each.target).first];
  }
  pending.request = fabric_.start(call);
  if (!device_.synchronous() && entry != not_recorded) {
    recording_.end(entry, device_.mark(Queue::data));
  }
  data_pending_.push_back(pending);
}

void Runner::Interpreter::send(std::uint32_t i) {
  const models::Channel& channel = program_.channels[ranks_.instructions[i].target];
  const Group& pipe = groups_[channel.forward ? models::forward_pipe : models::backward_pipe];
  const Queue queue = Queue::data;
  before_call(queue);
  Pending pending;
  pending.entry = not_recorded;
  pending.instruction = i;
  pending.peer = pipe.members[channel.to];
  const Mark start = recording_.instructions() ? device_.mark(queue) : Mark{};
  pending.request = fabric_.send({.group = pipe.id,
                                  .peer = static_cast<int>(channel.to),
                                  .buffer = arena_.data() + plan_.bound(i).out,
                                  .bytes = channel.bytes.count(),
                                  .queue = queue});
  if (recording_.instructions()) {
    recording_.end(recording_.add(i, start), device_.mark(queue));  // the launch: nobody waits
  }
  sends_.push_back(pending);
}

void Runner::Interpreter::receive(std::uint32_t i) {
  const Instruction& each = ranks_.instructions[i];
  const models::Channel& channel = program_.channels[each.target];
  const Group& pipe = groups_[channel.forward ? models::forward_pipe : models::backward_pipe];
  const Bound& bound = plan_.bound(i);
  const std::int64_t at =
      channel.forward ? bound.saved + plan_.chunk(each.chunk).arrival : bound.in;
  Pending pending;
  pending.entry = not_recorded;
  pending.instruction = i;
  pending.peer = pipe.members[channel.from];
  before_call(pending.queue);  // who had the memory before has left it
  if (recording_.instructions()) pending.entry = recording_.add(i, device_.mark(pending.queue));
  pending.request = fabric_.receive({.group = pipe.id,
                                     .peer = static_cast<int>(channel.from),
                                     .buffer = arena_.data() + at,
                                     .bytes = channel.bytes.count(),
                                     .queue = pending.queue});
  if (!device_.synchronous() && pending.entry != not_recorded) {
    recording_.end(pending.entry, device_.mark(pending.queue));
  }
  arrivals_.push_back(pending);
}

/// One bucket, or its parts around a tied table.
void Runner::Interpreter::reduce(std::uint32_t i) {
  const std::uint32_t target = ranks_.instructions[i].target;
  const models::JointCollective& joint = program_.collectives[target];
  const auto [first, last] = layout_.reduced(target);
  if (!compressed_.empty()) return reduce_compressed(i, first);
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
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

/// The exchange of a bucket's narrow copy, of its largest values, or of their places.
void Runner::Interpreter::reduce_compressed(std::uint32_t i, std::size_t bucket) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  const std::map<std::string, std::byte*>& parts = compressed_.at(i).parts;
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  CollectiveCall call;
  call.kind = joint.kind;
  if (joint.kind == Collective::all_reduce) {
    call.send = call.receive = parts.at("narrow");
    call.count = layout_.buckets()[bucket].count;
    call.element = Element::fp16;
  } else {
    const bool places = joint.elements == 0;
    call.send = parts.at(places ? "indices" : "values");
    call.receive = parts.at(places ? "indices.all" : "values.all");
    call.count = joint.bytes.count() / program_.plan.data;
    call.element = Element::byte;
  }
  collective(i, joint.communicator, call, entry);
}

/// Runs a phase on one bucket: what compresses it, or undoes that.
void Runner::Interpreter::compress(std::uint32_t i) {
  const Instruction& each = ranks_.instructions[i];
  if (each.awaits != models::no_binding) await(each.awaits);
  const Compressed& of = compressed_.at(i);
  const std::uint32_t id = program_.phases[each.target].invocations.front().block;
  const models::Block& block = program_.blocks[id];
  std::vector<View> views;
  for (const models::Operand& operand : block.operands) {
    std::byte* at = operand.name == "gradients" ? gradient_at(layout_.buckets()[of.bucket].first)
                                                : of.parts.at(operand.name);
    views.push_back({at, operand.dtype, operand.shape});
  }
  for (std::size_t op = 0; op < block.operations.size(); ++op) {
    const models::Operation& operation = block.operations[op];
    std::vector<View> reads, writes;
    for (const models::OperandId operand : operation.reads) reads.push_back(views[operand]);
    for (const models::OperandId operand : operation.writes) writes.push_back(views[operand]);
    Kernel kernel;
    kernel.operation = &operation;
    kernel.reads = reads;
    kernel.writes = writes;
    kernel.model = &program_.model;
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

/// The buffer that a part of backward fills is the one that the next reduction empties.
void Runner::Interpreter::fill_next_bucket(std::uint32_t i) {
  for (std::size_t next = i + 1; next < ranks_.instructions.size(); ++next) {
    const Instruction& each = ranks_.instructions[next];
    if (each.op != models::Opcode::reduce_gradient) continue;
    const std::size_t buffer = program_.collectives[each.target].buffer;
    filled_at_[layout_.reduced(each.target).first] = buckets_.data() + bucket_offsets_[buffer];
    return;
  }
}

/// Behind a reduction of ZeRO-2 and 3 the owned piece is added to the sums, and the bucket is
/// cleared for what fills it next.
void Runner::Interpreter::add_to_sums(Pending& pending) {
  const Bucket& bucket = layout_.buckets()[layout_.reduced(pending.target).first];
  const std::int64_t piece = (layout_.piece_of(bucket) - bucket.first) * width_of(gradient_);
  const std::array<std::int64_t, 3> shape{1, 1, bucket.piece};
  const View fresh{pending.filled + piece, gradient_, shape};
  const View sum{gradients_.data() + bucket.owned * width_of(gradient_), gradient_, shape};
  const std::array<View, 2> reads{fresh, sum};
  Kernel kernel;
  kernel.operation = &accumulate_;
  kernel.reads = reads;
  kernel.writes = {&sum, 1};
  kernel.model = &program_.model;
  device_.run(kernel);
  device_.zero(pending.filled, Bytes{bucket.padded * width_of(gradient_)});
}

/// One unit's weights from their owners (ZeRO-3).
void Runner::Interpreter::unshard(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  std::int64_t element = 0;
  if (joint.layers > 0) {
    element = layer_base_[static_cast<std::size_t>(joint.first_layer)];
  } else if ((joint.ends & models::end_embedding) != 0) {
    element = layout_.offset(models::embedding_forward, -1, "embedding.weight");
  } else {
    element = layout_.offset(models::head_forward, -1, "head.weight");
  }
  const std::size_t number = layout_.bucket_at(element);
  const Bucket& bucket = layout_.buckets()[number];
  weights_at_[number] = arena_.data() + plan_.bound(i).saved;
  CollectiveCall call;
  call.kind = Collective::all_gather;
  call.send = parameters_.data() + bucket.owned * width_of(storage_);
  call.receive = weights_at_[number];
  call.count = bucket.piece;
  call.element = Interpreter::element(storage_);
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  collective(i, joint.communicator, call, entry);
}

void Runner::Interpreter::tie(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  wait_for_data();
  if (joint.communicator != models::tie_group) return sum_addends(i, joint.communicator);
  const PlacedTensor* table = layout_.tied_table();
  ensure(table != nullptr, "a tie without a tied table");
  CollectiveCall call;
  call.send = call.receive = gradients_.data() + table->offset * width_of(gradient_);
  call.count = table->elements();
  call.element = element(gradient_);
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  collective(i, joint.communicator, call, entry);
}

/// Side by side in the workspace, summed as one, and back.
void Runner::Interpreter::sum_addends(std::uint32_t i, std::uint16_t communicator) {
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  const std::int64_t width = width_of(gradient_);
  std::int64_t total = 0;
  for (const Span& span : layout_.addends()) {
    device_.copy(owned_gradient_at(span.first), arena_.data() + total * width,
                 Bytes{span.count * width}, Queue::compute);
    total += span.count;
  }
  CollectiveCall call;
  call.send = call.receive = arena_.data();
  call.count = total;
  call.element = element(gradient_);
  if (total > 0) collective(i, communicator, call, entry);
  wait_for_data();
  total = 0;
  for (const Span& span : layout_.addends()) {
    device_.copy(arena_.data() + total * width, owned_gradient_at(span.first),
                 Bytes{span.count * width}, Queue::compute);
    total += span.count;
  }
}

std::byte* Runner::Interpreter::owned_gradient_at(std::int64_t at) const {
  if (!shards_sums_) return gradients_.data() + at * width_of(gradient_);
  const Bucket& bucket = layout_.buckets()[layout_.bucket_at(at)];
  const std::int64_t owned = bucket.owned + at - layout_.piece_of(bucket);
  return gradients_.data() + owned * width_of(gradient_);
}

void Runner::Interpreter::norm(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  CollectiveCall call;
  call.send = call.receive = scalars_.data();
  call.count = 1;
  call.element = element(state_);
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  collective(i, joint.communicator, call, entry);
  wait_for_data();
  device_.finish();
  read_norm();
}

/// The host takes the root of the sum of squares.
void Runner::Interpreter::read_norm() {
  std::array<std::byte, 8> bytes{};
  device_.read(scalars_.data(), bytes.data(), Bytes{width_of(state_)});
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  if (settings_.arithmetic == Arithmetic::ring) {
    ring_norm_ = as(std::uint64_t{});
  } else {
    norm_ = std::sqrt(width_of(state_) == 8 ? as(double{}) : static_cast<double>(as(float{})));
  }
}

void Runner::Interpreter::optimize(std::uint32_t i) {
  wait_for_data();
  if (!gradients_seen_ && settings_.before_update) {
    device_.finish();
    settings_.before_update();
  }
  gradients_seen_ = true;
  for (const models::Invocation& run : program_.phases[ranks_.instructions[i].target].invocations) {
    const models::Block& block = program_.blocks[run.block];
    for (std::size_t op = 0; op < block.operations.size(); ++op) {
      const models::Operation& operation = block.operations[op];
      std::size_t entry = not_recorded;
      if (recording_.operations()) {
        entry = recording_.add(i, device_.mark(operation.queue), run.block, -1, op);
      } else if (recording_.instructions()) {
        entry = recording_.add(i, device_.mark(operation.queue));
      }
      operation.kind == models::OpKind::adam ? adam(operation) : squared_norm(operation);
      if (entry != not_recorded) recording_.end(entry, device_.mark(operation.queue));
    }
  }
}

void Runner::Interpreter::squared_norm(const models::Operation& op) {
  device_.zero(scalars_.data(), Bytes{8});
  const View sum{scalars_.data(), state_, {1, 1, 1}};
  for (const Span& span : layout_.counted()) {
    const View range{owned_gradient_at(span.first), gradient_, {1, 1, span.count}};
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = {&range, 1};
    kernel.writes = {&sum, 1};
    kernel.model = &program_.model;
    device_.run(kernel);
  }
}

/// The owned piece of each bucket; all of them at once where they follow each other.
void Runner::Interpreter::adam(const models::Operation& op) {
  AdamStep numbers = settings_.adam;
  const bool clips = settings_.clip > 0 && norm_ > settings_.clip;
  numbers.gradient_scale = clips ? settings_.clip / norm_ : 1.0;
  numbers.step = ++updates_;
  const bool in_a_row = !layout_.sharded() || shards_weights_;
  if (in_a_row) {
    return update(op, numbers, gradients_.data(), parameters_.data(), 0, layout_.owned());
  }
  for (const Bucket& bucket : layout_.buckets()) {
    const std::int64_t piece = layout_.piece_of(bucket);
    update(op, numbers, owned_gradient_at(piece), parameters_.data() + piece * width_of(storage_),
           bucket.owned, bucket.piece);
  }
  // What other ranks own holds addends still.
  if (!shards_sums_) device_.zero(gradients_.data(), gradients_.bytes());
}

void Runner::Interpreter::update(const models::Operation& op, const AdamStep& numbers,
                                 std::byte* gradient, std::byte* working, std::int64_t owned,
                                 std::int64_t count) {
  if (count == 0) return;
  const auto view = [&](std::byte* data, DType type) { return View{data, type, {1, 1, count}}; };
  const View sums = view(gradient, gradient_);
  const View master = view(state_at(StateKind::parameter, owned), state_);
  const View first = view(state_at(StateKind::first_moment, owned), state_);
  const View second = view(state_at(StateKind::second_moment, owned), state_);
  const std::array<View, 4> reads{sums, master, first, second};
  const std::array<View, 5> writes{master, first, second, sums, view(working, storage_)};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = {writes.data(), separate_master_ ? 5U : 4U};
  kernel.model = &program_.model;
  kernel.adam = numbers;
  device_.run(kernel);
}

void Runner::Interpreter::gather(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  const std::size_t entry =
      recording_.instructions() ? recording_.add(i, device_.mark(Queue::data)) : not_recorded;
  gather_parameters(joint.communicator, joint.kind, entry, i);
}

/// Each bucket from its owners, piece by piece: all at once, or one owner after another.
void Runner::Interpreter::gather_parameters(std::uint16_t communicator, Collective kind,
                                            std::size_t entry, std::uint32_t i) {
  const int owners = kind == Collective::broadcast ? static_cast<int>(program_.plan.data) : 1;
  for (const Bucket& bucket : layout_.buckets()) {
    for (int owner = 0; owner < owners; ++owner) {
      CollectiveCall call;
      call.kind = kind;
      call.count = bucket.piece;
      call.element = element(storage_);
      call.root = owner;
      call.receive = parameters_.data() + bucket.first * width_of(storage_);
      call.send = parameters_.data() + layout_.piece_of(bucket) * width_of(storage_);
      if (kind == Collective::broadcast) {
        call.receive += owner * bucket.piece * width_of(storage_);
        call.send = call.receive;
      }
      collective(i, communicator, call, entry);
    }
  }
}

}  // namespace orrery::executor
