#include "executor/fabric/staged/staged_fabric.hpp"

#include <algorithm>
#include <utility>

namespace orrery::executor {

using models::Collective;

StagedFabric::StagedFabric(Fabric& carrier, Device& device)
    : carrier_{carrier}, device_{device}, name_{std::string{carrier.name()} + ", staged"} {}

StagedFabric::~StagedFabric() {
  if (!open_.empty()) carrier_.abort("a rank left in the middle of a step");
}

GroupId StagedFabric::make_group(std::span<const int> members) {
  const GroupId id = carrier_.make_group(members);
  groups_[id] = {std::ssize(members), index_in(members, carrier_.rank())};
  return id;
}

/// In the buffer, what is sent comes before what is received.
Request StagedFabric::start_parts(const CollectiveCall& call) {
  std::int64_t given = 0, taken = 0;
  for (const MemberPart& each : call.send_parts) given += each.bytes;
  for (const MemberPart& each : call.receive_parts) taken += each.bytes;
  StagedCall open{.buffer = buffer_of(given + taken), .receive_parts = call.receive_parts};
  CollectiveCall carried = call;
  std::byte* at = open.buffer.data();
  for (MemberPart& each : carried.send_parts) {
    device_.read(each.at, at, Bytes{each.bytes});
    open.in_use = false;  // a read is enqueued after all queues
    each.at = std::exchange(at, at + each.bytes);
  }
  open.from = at;
  for (MemberPart& each : carried.receive_parts) each.at = std::exchange(at, at + each.bytes);
  open.carried = carrier_.start(carried);
  return open_.keep(std::move(open));
}

Request StagedFabric::start(const CollectiveCall& call) {
  if (call.kind == Collective::all_to_all_v) return start_parts(call);
  const StagedGroup& group = groups_.at(call.group);
  const std::int64_t size = call.count * size_of(call.element);
  const RankShares shares = shares_of(call.kind, group.members);
  const bool sends = call.kind != Collective::broadcast || call.root == group.index;
  // The smaller buffer is inside the larger one, as in a call in place.
  const bool gathers = shares.received > shares.sent, scatters = shares.sent > shares.received;
  StagedCall open{.buffer = buffer_of(std::max(shares.sent, shares.received) * size),
                  .to = call.receive,
                  .bytes = shares.received * size};
  CollectiveCall carried = call;
  carried.send = open.buffer.data() + (gathers ? group.index * size : 0);
  carried.receive = open.buffer.data() + (scatters ? group.index * size : 0);
  if (sends && size > 0) {
    std::byte* const sent = open.buffer.data() + (gathers ? group.index * size : 0);
    device_.read(call.send, sent, Bytes{shares.sent * size});
    open.in_use = false;  // a read is enqueued after all queues
  }
  open.from = carried.receive;
  open.carried = carrier_.start(carried);
  return open_.keep(std::move(open));
}

Request StagedFabric::transfer(const TransferCall& call, TransferEnd end) {
  StagedCall open{.buffer = buffer_of(call.bytes)};
  TransferCall carried = call;
  carried.buffer = open.buffer.data();
  if (end == TransferEnd::receives) {
    open.from = carried.buffer;
    open.to = call.buffer;
    open.bytes = call.bytes;
  } else if (call.bytes > 0) {
    device_.read(call.buffer, carried.buffer, Bytes{call.bytes});
  }
  open.carried = carrier_.transfer(carried, end);
  return open_.keep(std::move(open));
}

void StagedFabric::wait(Request request) {
  StagedCall& open = open_.at(request);
  carrier_.wait(open.carried);
  if (open.bytes > 0) {
    if (open.in_use) device_.finish();
    device_.write(open.from, open.to, Bytes{open.bytes});
  }
  if (!open.receive_parts.empty() && open.in_use) device_.finish();
  for (const MemberPart& each : open.receive_parts) {
    device_.write(open.from, each.at, Bytes{each.bytes});
    open.from += each.bytes;
  }
  spare_.push_back(std::move(open.buffer));
  open_.erase(request);
}

StagedFabric::Buffer StagedFabric::buffer_of(std::int64_t bytes) {
  Buffer buffer;
  if (!spare_.empty()) {
    buffer = std::move(spare_.back());
    spare_.pop_back();
  }
  if (buffer.size() < static_cast<std::size_t>(bytes)) {
    buffer.resize(static_cast<std::size_t>(bytes));
  }
  return buffer;
}

}  // namespace orrery::executor
