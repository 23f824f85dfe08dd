#include "executor/fabric/tcp/tcp_fabric.hpp"

#include "executor/device/copy_bytes.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

/// Up to here one hop beats the ring's n-1, though more bytes cross the wire.
/// Source  loopback, 4 ranks on 2 cores: equal at about 32 KiB of all-reduce
constexpr std::int64_t small_message = 32 << 10;
constexpr std::chrono::milliseconds nap{1000};  // between checks for an abort or a lost peer

/// Channel 0 of a group carries its transfers; each collective has a channel of its own.
Stream stream_of(GroupId group, std::uint64_t channel) {
  return static_cast<Stream>(group) << 40 | channel;
}

}  // namespace

std::shared_ptr<TcpCall> start_collective(const CollectiveJob& job) {
  using models::Collective;
  const CollectiveCall& call = job.call;
  const auto members = static_cast<std::int64_t>(job.group.members.size());
  const bool whole = call.kind == Collective::all_reduce || call.kind == Collective::broadcast;
  const std::int64_t bytes = call.count * size_of(call.element);
  const bool small = bytes * (whole ? 1 : members) <= small_message;
  switch (call.kind) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return small ? start_direct(job) : start_ring(job);
    case Collective::all_to_all:
      return start_direct(job);
    case Collective::broadcast:
      return start_chain(job);
    case Collective::all_to_all_v:
      return start_parts(job);
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::send_receive:
      break;
  }
  throw ContractError{"a fabric has no such collective"};
}

TcpFabric::TcpFabric(Store& store, const TcpSettings& settings)
    : wire_{store.rank(), connected_ranks(store, settings.patience)} {}

TcpFabric::~TcpFabric() = default;

GroupId TcpFabric::make_group(std::span<const int> members) {
  TcpGroup group{.members = {members.begin(), members.end()}};
  for (const int each : group.members)
    ensure(each >= 0 && each < ranks(), "a rank beyond the world");
  group.index = index_in(members, rank());
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

TcpGroup& TcpFabric::group_of(GroupId group) {
  TcpGroup& found = groups_.at(group);
  ensure(found.index >= 0, "a rank calls in a group that it is no member of");
  return found;
}

Request TcpFabric::start(const CollectiveCall& call) {
  wire_.refuse_if_aborted();
  TcpGroup& group = group_of(call.group);
  const std::uint64_t channel = ++group.collectives;
  const bool in_parts = call.kind == models::Collective::all_to_all_v;
  const bool alone = group.members.size() == 1;
  if (!in_parts && (alone || call.count == 0)) {
    const std::int64_t size = call.count * size_of(call.element);
    if (alone && call.receive != call.send) copy_bytes(call.receive, call.send, size);
    return requests_.keep(std::make_shared<TcpCall>(wire_, 0));  // done already
  }
  return requests_.keep(start_collective(
      {.wire = wire_, .group = group, .call = call, .stream = stream_of(call.group, channel)}));
}

Request TcpFabric::transfer(const TransferCall& call, TransferEnd end) {
  wire_.refuse_if_aborted();
  const int peer = group_of(call.group).members.at(static_cast<std::size_t>(call.peer));
  const auto size = static_cast<std::size_t>(call.bytes);
  const auto work = std::make_shared<TcpCall>(wire_, stream_of(call.group, 0));
  end == TransferEnd::sends ? work->send(peer, call.buffer, size)
                            : work->receive(peer, call.buffer, size);
  return requests_.keep(work);
}

bool TcpFabric::test(Request request) {
  const TcpCall& work = *requests_.at(request);
  if (!work.done()) wire_.progress({});
  return work.done();
}

void TcpFabric::wait(Request request) {
  const std::shared_ptr<TcpCall> work = requests_.at(request);
  while (!work->done()) wire_.progress(nap);
  requests_.erase(request);
}

}  // namespace orrery::executor
