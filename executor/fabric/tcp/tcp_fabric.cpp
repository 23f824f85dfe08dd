#include "executor/fabric/tcp/tcp_fabric.hpp"

#include <algorithm>
#include <cstring>

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

std::shared_ptr<InProgress> start_collective(const CollectiveJob& job) {
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
  const auto found = std::find(group.members.begin(), group.members.end(), rank());
  if (found != group.members.end()) group.index = static_cast<int>(found - group.members.begin());
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

TcpGroup& TcpFabric::group_of(GroupId group) {
  TcpGroup& found = groups_.at(group);
  ensure(found.index >= 0, "a rank calls in a group that it is no member of");
  return found;
}

Request TcpFabric::keep(std::shared_ptr<InProgress> work) {
  requests_.emplace(++last_request_, std::move(work));
  return {last_request_};
}

Request TcpFabric::start(const CollectiveCall& call) {
  wire_.refuse_if_aborted();
  TcpGroup& group = group_of(call.group);
  const std::uint64_t channel = ++group.collectives;
  const bool in_parts = call.kind == models::Collective::all_to_all_v;
  if (call.count == 0 && !in_parts) return keep(std::make_shared<InProgress>());
  if (group.members.size() == 1 && !in_parts) {
    const auto size = static_cast<std::size_t>(call.count * size_of(call.element));
    if (call.receive != call.send) copy_bytes(call.receive, call.send, size);
    return keep(std::make_shared<InProgress>());
  }
  return keep(start_collective(
      {.wire = wire_, .group = group, .call = call, .stream = stream_of(call.group, channel)}));
}

Request TcpFabric::send(const TransferCall& call) {
  wire_.refuse_if_aborted();
  const int peer = group_of(call.group).members.at(static_cast<std::size_t>(call.peer));
  auto work = std::make_shared<InProgress>();
  work->left = 1;
  wire_.send(peer, stream_of(call.group, 0), call.buffer, static_cast<std::size_t>(call.bytes),
             [work] { work->left = 0; });
  return keep(std::move(work));
}

Request TcpFabric::receive(const TransferCall& call) {
  wire_.refuse_if_aborted();
  const int peer = group_of(call.group).members.at(static_cast<std::size_t>(call.peer));
  auto work = std::make_shared<InProgress>();
  work->left = 1;
  wire_.receive(peer, stream_of(call.group, 0), call.buffer, static_cast<std::size_t>(call.bytes),
                [work] { work->left = 0; });
  return keep(std::move(work));
}

bool TcpFabric::test(Request request) {
  const InProgress& work = *requests_.at(request.id);
  if (work.left > 0) wire_.progress({});
  return work.left == 0;
}

void TcpFabric::wait(Request request) {
  const auto found = requests_.find(request.id);
  ensure(found != requests_.end(), "a request is waited for twice");
  const std::shared_ptr<InProgress> work = found->second;
  while (work->left > 0) wire_.progress(nap);
  requests_.erase(request.id);
}

}  // namespace orrery::executor
