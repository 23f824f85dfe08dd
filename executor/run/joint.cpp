// What ranks do together between blocks: calls of the fabric and the waits behind them, transfers,
// and sums of what several ranks hold of one gradient.

#include <algorithm>

#include "executor/run/interpreter.hpp"
#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::DType;
using models::Lane;

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

/// What the other ranks are given has been computed, and what is overwritten has been read.
void Runner::Interpreter::before_call(Lane queue) {
  if (!device_.synchronous()) device_.wait(queue, device_.mark(Lane::compute));
}

/// A collective has been started: its end is a place on its queue, whatever comes behind it there.
void Runner::Interpreter::begun(Pending& pending) {
  if (device_.synchronous()) return;
  pending.done = device_.mark(pending.queue);
  if (pending.entry != not_recorded) recording_.end(pending.entry, pending.done);
}

/// The host waits where the fabric needs it; the compute queue goes on behind the call.
void Runner::Interpreter::wait(Pending& pending) {
  at_.peer.store(pending.peer, std::memory_order_relaxed);
  at_.communicator.store(pending.peer < 0 ? pending.communicator : -1, std::memory_order_relaxed);
  fabric_.wait(pending.request);
  at_.peer.store(-1, std::memory_order_relaxed);
  at_.communicator.store(-1, std::memory_order_relaxed);
  const bool transfer = pending.peer >= 0;
  if (!device_.synchronous() && !transfer) {
    device_.wait(Lane::compute, pending.done);
  } else if (pending.entry != not_recorded && recording_.instructions()) {
    recording_.end(pending.entry, device_.mark(pending.queue));
  }
  if (pending.filled != nullptr) add_to_sums(pending);
}

/// Joint collectives end in the order in which they began.
void Runner::Interpreter::await(models::Token collective) {
  const auto found =
      std::find_if(data_pending_.rbegin(), data_pending_.rend(),
                   [&](const Pending& each) { return each.instruction == collective; });
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

/// Its entry in the recording begins where all that it needs is there.
std::size_t Runner::Interpreter::begin_joint(std::uint32_t i) {
  if (!recording_.instructions()) return not_recorded;
  before_call(Lane::data);
  return recording_.add(i, device_.mark(Lane::data));
}

void Runner::Interpreter::collective(std::uint32_t i, std::uint16_t communicator,
                                     CollectiveCall call, std::size_t entry) {
  const Group& group = groups_[communicator];
  ensure(group.index >= 0, "a rank takes part in a collective of a group that it is not in");
  if (group.alone()) {
    if (call.send != call.receive) {
      device_.copy(call.send, call.receive, Bytes{call.count * size_of(call.element)},
                   Lane::compute);
    }
    return;
  }
  call.group = group.id;
  call.queue = Lane::data;
  before_call(Lane::data);
  Pending pending;
  pending.entry = entry;
  pending.instruction = i;
  pending.communicator = communicator;
  if (i < ranks_.instructions.size()) {
    const Instruction& each = ranks_.instructions[i];
    const bool empties = shards_sums_ && each.op == models::Opcode::reduce_gradient;
    if (empties) pending.filled = filled_at_[layout_.reduced(each.target).first];
  }
  pending.request = fabric_.start(call);
  begun(pending);
  data_pending_.push_back(pending);
}

void Runner::Interpreter::send(std::uint32_t i) {
  const models::Channel& channel = program_.channels[ranks_.instructions[i].target];
  const Group& pipe = groups_[channel.communicator];
  Pending pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.to];
  pending.queue = Lane::compute;  // no other has what is sent, or what is received
  const Mark start = recording_.instructions() ? device_.mark(pending.queue) : Mark{};
  pending.request = fabric_.send({.group = pipe.id,
                                  .peer = static_cast<int>(channel.to),
                                  .buffer = arena_.data() + plan_.bound(i).out,
                                  .bytes = channel.bytes.count(),
                                  .queue = pending.queue});
  if (recording_.instructions()) {
    const std::size_t entry = recording_.add(i, start);  // the launch: nobody waits
    recording_.end(entry, device_.mark(pending.queue));
  }
  sends_.push_back(pending);
}

void Runner::Interpreter::receive(std::uint32_t i) {
  const Instruction& each = ranks_.instructions[i];
  const models::Channel& channel = program_.channels[each.target];
  const Group& pipe = groups_[channel.communicator];
  const Bound& bound = plan_.bound(i);
  const std::int64_t at =
      channel.forward ? bound.saved + plan_.chunk(each.chunk).arrival : bound.in;
  Pending pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.from];
  pending.queue = Lane::compute;  // who had the memory before has left it
  if (recording_.instructions()) pending.entry = recording_.add(i, device_.mark(pending.queue));
  pending.request = fabric_.receive({.group = pipe.id,
                                     .peer = static_cast<int>(channel.from),
                                     .buffer = arena_.data() + at,
                                     .bytes = channel.bytes.count(),
                                     .queue = pending.queue});
  arrivals_.push_back(pending);
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
  const std::size_t entry = begin_joint(i);
  collective(i, joint.communicator, call, entry);
}

/// Side by side in the workspace, summed as one, and back.
void Runner::Interpreter::sum_addends(std::uint32_t i, std::uint16_t communicator) {
  const std::size_t entry = begin_joint(i);
  const std::int64_t width = width_of(gradient_);
  std::int64_t total = 0;
  for (const Span& span : layout_.partial_sums()) {
    device_.copy(owned_gradient_at(span.first), arena_.data() + total * width,
                 Bytes{span.count * width}, Lane::compute);
    total += span.count;
  }
  CollectiveCall call;
  call.send = call.receive = arena_.data();
  call.count = total;
  call.element = element(gradient_);
  if (total > 0) collective(i, communicator, call, entry);
  wait_for_data();
  total = 0;
  for (const Span& span : layout_.partial_sums()) {
    device_.copy(arena_.data() + total * width, owned_gradient_at(span.first),
                 Bytes{span.count * width}, Lane::compute);
    total += span.count;
  }
}

}  // namespace orrery::executor
