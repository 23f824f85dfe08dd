#include "tests/executor/queued_fabric.hpp"

#include <algorithm>

namespace orrery::executor {

QueuedFabric::QueuedFabric(ThreadWorld& world, int rank, QueuedDevice& device)
    : world_{world}, rank_{rank}, device_{device} {}

QueuedFabric::~QueuedFabric() {
  device_.drain();  // lanes call the fabrics
}

/// Each of the two queues that collectives run on counts a group's on its own.
GroupId QueuedFabric::make_group(std::span<const int> members) {
  groups_.emplace_back(members.begin(), members.end());
  for (const auto& [lane, fabric] : fabrics_) {
    for (int queue = 0; queue < 2; ++queue) fabric->make_group(members);
  }
  return static_cast<GroupId>(groups_.size() - 1);
}

Fabric& QueuedFabric::on_lane(std::size_t lane) {
  std::unique_ptr<Fabric>& fabric = fabrics_[lane];
  if (fabric) return *fabric;
  fabric = world_.fabric(rank_);
  for (const std::vector<int>& members : groups_) {
    for (int queue = 0; queue < 2; ++queue) fabric->make_group(members);
  }
  return *fabric;
}

Request QueuedFabric::keep(Open open) {
  open_.emplace(++last_, open);
  return {last_};
}

Request QueuedFabric::start(const CollectiveCall& call) {
  using models::Collective;
  const std::size_t lane = QueuedDevice::lane_of(call.queue);
  const auto members = static_cast<std::int64_t>(groups_.at(call.group).size());
  const std::int64_t size = call.count * executor::size_of(call.element);
  const bool all = call.kind == Collective::all_to_all;
  const bool scatters = call.kind == Collective::reduce_scatter;
  const bool gathers = call.kind == Collective::all_gather;
  std::vector<QueuedDevice::Touch> touched{
      {call.send, size * (all || scatters ? members : 1), false},
      {call.receive, size * (all || gathers ? members : 1), true}};
  if (call.kind == Collective::all_to_all_v) {
    touched.clear();
    for (const MemberPart& each : call.send_parts) touched.push_back({each.at, each.bytes, false});
    for (const MemberPart& each : call.receive_parts)
      touched.push_back({each.at, each.bytes, true});
  }
  CollectiveCall carried = call;
  carried.group = 2 * call.group + (call.queue == models::Lane::data ? 1 : 0);
  Fabric& fabric = on_lane(lane);
  device_.enqueue(lane, models::name(call.kind), touched,
                  [&fabric, carried] { fabric.wait(fabric.start(carried)); });
  return keep({device_.mark_lane(lane), call.queue});
}

Request QueuedFabric::transfer(const TransferCall& call, TransferEnd end) {
  const bool sends = end == TransferEnd::sends;
  const std::vector<int>& members = groups_.at(call.group);
  const auto me =
      static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const Way way{static_cast<int>(call.group), sends ? me : call.peer, sends ? call.peer : me};
  if (ways_.count(way) == 0) ways_[way] = device_.add_lane();
  const std::size_t lane = ways_[way];
  TransferCall carried = call;
  carried.group = 2 * call.group;
  Fabric& fabric = on_lane(lane);
  device_.wait_lane(lane, device_.mark(call.queue));
  device_.enqueue(lane, sends ? "send" : "receive", {{call.buffer, call.bytes, !sends}},
                  [&fabric, carried, end] { fabric.wait(fabric.transfer(carried, end)); });
  return keep({device_.mark_lane(lane), call.queue, true});
}

bool QueuedFabric::test(Request request) {
  return device_.reached(open_.at(request.id).done);
}

void QueuedFabric::wait(Request request) {
  const Open open = open_.at(request.id);
  if (open.transfer) device_.wait_lane(QueuedDevice::lane_of(open.queue), open.done);
  open_.erase(request.id);
}

}  // namespace orrery::executor
