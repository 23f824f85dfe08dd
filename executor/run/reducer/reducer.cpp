#include "executor/run/reducer/reducer.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::Lane;
using models::Token;

}  // namespace

Reducer::Reducer(const RankContext& rank, Weights& weights, HeldMemory& memory)
    : rank_{rank},
      weights_{weights},
      compressed_{rank, weights, memory},
      number_{memory.hold(models::BufferKind::staging, 64)} {}

/// Describes a new call; its entry in the recording begins when all its inputs are ready.
PendingCall Reducer::begin(Token i, std::uint16_t communicator) {
  PendingCall pending;
  pending.instruction = i;
  pending.communicator = communicator;
  if (i == models::no_token || !rank_.recording.instructions()) return pending;
  rank_.calls.before(Lane::data);
  pending.entry = rank_.recording.begin(i, Lane::data);
  return pending;
}

void Reducer::start(CollectiveCall call, PendingCall pending) {
  const Group& group = rank_.calls.group(pending.communicator);
  ensure(group.index >= 0, "a rank takes part in a collective of a group that it is not in");
  if (group.alone()) {
    if (call.send == call.receive) return;
    return rank_.device.copy(call.send, call.receive, Bytes{call.count * size_of(call.element)},
                             Lane::compute);
  }
  rank_.calls.before(Lane::data);
  rank_.calls.start(call, pending);
  pending_.push_back(pending);
}

/// Reduces one bucket, or several where a tied table splits it.
void Reducer::reduce(Token i) {
  const models::JointCollective& joint = rank_.joint(i);
  const models::CommunicatorRole role = rank_.program.role_of(joint.communicator);
  if (role == models::CommunicatorRole::replica) return reduce_between_copies(i);
  PendingCall pending = begin(i, joint.communicator);
  if (compressed_.any()) return start(compressed_.call_of(i), pending);
  const bool ends = rank_.program.mesh.degree(models::MeshAxis::replica) == 1;
  const auto [first, last] = rank_.layout.reduced(rank_.instruction(i).target);
  for (std::size_t b = first; b < last; ++b) {
    const Bucket& bucket = rank_.layout.buckets()[b];
    CollectiveCall call;
    call.kind = joint.kind;
    call.element = rank_.calls.element(weights_.formats().gradient);
    call.send = call.receive = weights_.gradient(bucket.first);
    call.count = bucket.count;
    if (joint.kind == Collective::reduce_scatter) {
      call.count = bucket.piece;
      call.receive = weights_.gradient(rank_.layout.piece_of(bucket));
    }
    if (rank_.program.sharding.gradients && ends) pending.filled = weights_.gradient(bucket.first);
    start(call, pending);
  }
}

/// HSDP: all-reduces the pieces that the previous instruction has reduced, between the copies of
/// the sharded state.
void Reducer::reduce_between_copies(Token i) {
  wait_for(i - 1);
  PendingCall pending = begin(i, rank_.joint(i).communicator);
  const auto [first, last] = rank_.layout.reduced(rank_.instruction(i).target);
  for (std::size_t b = first; b < last; ++b) {
    const Bucket& bucket = rank_.layout.buckets()[b];
    if (rank_.program.sharding.gradients) pending.filled = weights_.gradient(bucket.first);
    sum_gradients(weights_.gradient(rank_.layout.piece_of(bucket)), bucket.piece, pending);
  }
}

void Reducer::compress(Token i) {
  const Token awaited = rank_.instruction(i).awaits;
  if (awaited != models::no_token) wait_for(awaited);
  compressed_.run(i);
}

/// Gathers one unit's weights from their owners (ZeRO-3).
void Reducer::unshard(Token i) {
  const models::JointCollective& joint = rank_.joint(i);
  const PendingCall pending = begin(i, joint.communicator);
  const auto [first, last] = rank_.layout.gathered(joint);
  for (std::size_t b = first; b < last; ++b) {
    const Bucket& bucket = rank_.layout.buckets()[b];
    CollectiveCall call;
    call.kind = Collective::all_gather;
    call.send = weights_.working(bucket.owned);
    call.receive = gathered_at(i, first, b);
    call.count = bucket.piece;
    call.element = rank_.calls.element(weights_.formats().storage);
    if (rank_.program.sharding.parameters_on_host) call.send = fetched(bucket, call);
    start(call, pending);
  }
}

/// Copies the owned piece from the host to its place in the gathered buffer.
const std::byte* Reducer::fetched(const Bucket& bucket, const CollectiveCall& call) {
  const std::int64_t width = width_of(weights_.formats().storage);
  const std::int64_t before = rank_.layout.piece_of(bucket) - bucket.first;
  std::byte* const place = call.receive + before * width;
  rank_.device.copy(call.send, place, Bytes{bucket.piece * width}, Lane::compute);
  return place;
}

/// Address of a bucket in the gathered buffer, where buckets follow each other as in the layout.
std::byte* Reducer::gathered_at(Token gather, std::size_t first, std::size_t bucket) const {
  const std::vector<Bucket>& all = rank_.layout.buckets();
  const std::int64_t before = all[bucket].first - all[first].first;
  return rank_.arena + rank_.plan.bound(gather).saved +
         before * width_of(weights_.formats().storage);
}

void Reducer::use_gathered(Token last_gather) {
  Token gather = models::first_gather(rank_.program, rank_.ranks, last_gather);
  for (; gather <= last_gather; ++gather) {
    const auto [first, last] = rank_.layout.gathered(rank_.joint(gather));
    for (std::size_t b = first; b < last; ++b) {
      weights_.bind_gathered(b, gathered_at(gather, first, b));
    }
  }
}

void Reducer::sum_replicas(Token i) {
  const models::JointCollective& joint = rank_.joint(i);
  wait_for_all();
  const PendingCall pending = begin(i, joint.communicator);
  const models::CommunicatorRole role = rank_.program.role_of(joint.communicator);
  if (role == models::CommunicatorRole::mirror) return sum_copies(pending);
  if (role != models::CommunicatorRole::tie) return sum_partial(pending);
  const PlacedTensor* tied = rank_.layout.tied_table();
  ensure(tied != nullptr, "a tie without a tied table");
  // Where weights are sharded: only the owned piece of the table, which is a bucket of its own.
  const Bucket& bucket = rank_.layout.buckets()[rank_.layout.bucket_at(tied->offset)];
  const bool piece = rank_.layout.sharded() && rank_.program.sharding.parameters;
  sum_gradients(weights_.owned_gradient(piece ? rank_.layout.piece_of(bucket) : tied->offset),
                piece ? bucket.piece : tied->elements(), pending);
}

void Reducer::sum_in_place(std::byte* at, std::int64_t count, models::DType type,
                           const PendingCall& pending) {
  CollectiveCall call;
  call.send = call.receive = at;
  call.count = count;
  call.element = rank_.calls.element(type);
  start(call, pending);
}

void Reducer::sum_gradients(std::byte* at, std::int64_t count, const PendingCall& pending) {
  sum_in_place(at, count, weights_.formats().gradient, pending);
}

/// Sums the gradients of all that this rank updates between two copies of the model, by bucket.
void Reducer::sum_copies(const PendingCall& pending) {
  for (const Bucket& bucket : rank_.layout.buckets()) {
    sum_gradients(weights_.owned_gradient(rank_.layout.piece_of(bucket)), bucket.piece, pending);
  }
}

/// Packs the partial sums into the workspace, all-reduces them as one, and copies them back.
void Reducer::sum_partial(const PendingCall& pending) {
  const models::DType type = weights_.formats().gradient;
  std::int64_t total = 0;
  const auto copy_spans = [&](bool pack) {
    total = 0;
    for (const Span& span : rank_.layout.partial_sums()) {
      std::byte* const gradient = weights_.owned_gradient(span.first);
      std::byte* const packed = rank_.arena + total * width_of(type);
      rank_.device.copy(pack ? gradient : packed, pack ? packed : gradient,
                        Bytes{span.count * width_of(type)}, Lane::compute);
      total += span.count;
    }
  };
  copy_spans(true);
  if (total > 0) sum_gradients(rank_.arena, total, pending);
  wait_for_all();
  copy_spans(false);
}

void Reducer::gather(Token i) {
  const models::JointCollective& joint = rank_.joint(i);
  gather_parameters(joint.kind, begin(i, joint.communicator));
}

/// The mesh view whose replicas a communicator joins.
models::MeshView Reducer::view_of(std::uint16_t communicator) const {
  const bool experts = rank_.program.role_of(communicator) == models::CommunicatorRole::expert_data;
  return experts ? models::MeshView::experts : models::MeshView::dense;
}

void Reducer::gather_all() {
  if (!rank_.layout.sharded() || rank_.program.sharding.parameters) return;
  for (std::uint16_t c = 0; c < rank_.program.communicators.size(); ++c) {
    const models::CommunicatorRole role = rank_.program.role_of(c);
    const bool owners =
        role == models::CommunicatorRole::data || role == models::CommunicatorRole::expert_data;
    if (owners) gather_parameters(Collective::all_gather, begin(models::no_token, c));
  }
  wait_for_all();
  rank_.device.finish();
}

/// Gathers each bucket from its owners: by one all-gather, or by a broadcast from each owner.
void Reducer::gather_parameters(Collective kind, const PendingCall& pending) {
  const models::DType type = weights_.formats().storage;
  const bool in_turn = kind == Collective::broadcast;
  for (const Bucket& bucket : rank_.layout.buckets()) {
    if (bucket.view != view_of(pending.communicator)) continue;
    const int owners = in_turn ? static_cast<int>(bucket.owners.count) : 1;
    for (int owner = 0; owner < owners; ++owner) {
      CollectiveCall call;
      call.kind = kind;
      call.count = bucket.piece;
      call.element = rank_.calls.element(type);
      call.root = owner;
      call.receive = weights_.parameter(bucket.first + owner * bucket.piece);
      call.send = in_turn ? call.receive : weights_.parameter(rank_.layout.piece_of(bucket));
      start(call, pending);
    }
  }
}

void Reducer::sum_number(std::uint16_t communicator, models::DType type, Token i) {
  sum_in_place(number(), 1, type, begin(i, communicator));
  wait_for_all();
}

void Reducer::wait(PendingCall& pending) {
  rank_.calls.wait(pending);
  if (pending.filled == nullptr) return;
  weights_.add_to_sums(rank_.instruction(pending.instruction).target, pending.filled);
}

/// Waits for a collective and for all that began before it.
void Reducer::wait_for(Token collective) {
  const auto found = std::find_if(pending_.rbegin(), pending_.rend(), [&](const PendingCall& each) {
    return each.instruction == collective;
  });
  for (auto each = pending_.begin(); each != found.base(); ++each) wait(*each);
  pending_.erase(pending_.begin(), found.base());
}

void Reducer::wait_for_all() {
  for (PendingCall& each : pending_) wait(each);
  pending_.clear();
}

void Reducer::wait_until_empty(const std::byte* bucket) {
  for (auto each = pending_.rbegin(); each != pending_.rend(); ++each) {
    if (each->filled == bucket) return wait_for(each->instruction);
  }
}

void Reducer::poll() {
  if (pending_.empty() || !rank_.calls.ended(pending_.front())) return;
  wait(pending_.front());
  pending_.erase(pending_.begin());
}

}  // namespace orrery::executor
