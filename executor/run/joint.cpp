// What ranks do together between blocks: calls of the fabric and the waits for them,
// and sums of what several ranks hold of one gradient.

#include <algorithm>

#include "executor/run/interpreter.hpp"
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

void Runner::Interpreter::wait_for_joint(PendingCall& pending) {
  calls_.wait(pending);
  if (pending.filled != nullptr) add_to_sums(pending);
}

/// Joint collectives end in the order in which they began.
void Runner::Interpreter::await(models::Token collective) {
  const auto found =
      std::find_if(data_pending_.rbegin(), data_pending_.rend(),
                   [&](const PendingCall& each) { return each.instruction == collective; });
  const auto end = found.base();
  for (auto each = data_pending_.begin(); each != end; ++each) wait_for_joint(*each);
  data_pending_.erase(data_pending_.begin(), end);
}

void Runner::Interpreter::wait_for_data() {
  for (PendingCall& each : data_pending_) wait_for_joint(each);
  data_pending_.clear();
}
/// Fabrics that cannot progress by themselves do so here; what is done is noted as it ends.
void Runner::Interpreter::poll() {
  if (data_pending_.empty() || !device_.synchronous()) return;
  if (!fabric_.test(data_pending_.front().request)) return;
  wait_for_joint(data_pending_.front());
  data_pending_.erase(data_pending_.begin());
}

/// Its entry in the recording begins where all that it needs is there.
std::size_t Runner::Interpreter::begin_joint(std::uint32_t i) {
  if (!recording_.instructions()) return not_recorded;
  calls_.before(Lane::data);
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
  calls_.before(Lane::data);
  PendingCall pending;
  pending.entry = entry;
  pending.instruction = i;
  pending.communicator = communicator;
  if (i < ranks_.instructions.size()) {
    const Instruction& each = ranks_.instructions[i];
    const bool empties = shards_sums_ && each.op == models::Opcode::reduce_gradient;
    if (empties) pending.filled = filled_at_[layout_.reduced(each.target).first];
  }
  pending.request = fabric_.start(call);
  calls_.begun(pending);
  data_pending_.push_back(pending);
}

void Runner::Interpreter::tie(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  wait_for_data();
  const bool table = program_.role_of(joint.communicator) == models::CommunicatorRole::tie;
  if (!table) return sum_addends(i, joint.communicator);
  const PlacedTensor* tied = layout_.tied_table();
  ensure(tied != nullptr, "a tie without a tied table");
  CollectiveCall call;
  call.send = call.receive = gradients_.data() + tied->offset * width_of(gradient_);
  call.count = tied->elements();
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
