#include "executor/fabric/nccl/nccl_fabric.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "executor/device/cuda/errors.hpp"
#include "executor/fabric/nccl/nccl_calls.hpp"
#include "executor/fabric/nccl/nccl_communicator.hpp"
#include "executor/fabric/nccl/nccl_rules.hpp"
#include "executor/fabric/open_calls.hpp"

namespace orrery::executor::cuda {

namespace {

using models::Collective;
using models::Lane;

constexpr int group_ctas = 32, direction_ctas = 8;  // thread blocks of one call: see the header

class NcclFabric final : public Fabric {
 public:
  NcclFabric(const NcclDevice& device, Store& store, int rank, int ranks,
             std::chrono::milliseconds deadline);
  ~NcclFabric() override;

  std::string_view name() const override { return "nccl"; }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  GroupId make_group(std::span<const int> members) override;
  void connect(GroupId group, int from, int to) override;
  Request start(const CollectiveCall& call) override;
  Request transfer(const TransferCall& call, TransferEnd end) override;
  bool test(Request request) override;
  void wait(Request request) override;
  std::optional<HostWaits> host_waits() const override { return communicators_.waits(); }
  void abort(std::string_view why) noexcept override { communicators_.abort(why); }

 private:
  struct NcclGroup {
    int members = 0, index = -1;
    ncclComm_t communicator = nullptr;  // null for a lone member among other ranks
    std::optional<Lane> last{};         // queue of the last call
    cudaEvent_t ended = nullptr;        // end of the last call
  };
  struct DirectionStream {
    ncclComm_t communicator = nullptr;
    Stream stream = nullptr;
  };
  struct OpenCall {
    cudaEvent_t done = nullptr;
    ncclComm_t communicator = nullptr;
    Lane queue = Lane::data;
    bool transfer = false;
  };

  void keep_order(NcclGroup& group, Lane queue);
  void issue(const NcclGroup& group, const CollectiveCall& call, Stream stream);
  const std::byte* copied_aside(const CollectiveCall& call, std::int64_t bytes);
  Request keep(OpenCall open, Stream stream);
  cudaEvent_t event();
  void finish(Stream stream, ncclComm_t communicator, std::string_view doing);

  NcclDevice device_;
  Store& store_;
  int rank_, ranks_;
  std::vector<NcclGroup> groups_;
  std::map<TransferDirection, DirectionStream> directions_;
  std::map<Lane, std::pair<std::byte*, std::int64_t>> aside_;  // copied inputs: memory, size
  std::byte* word_ = nullptr;                                  // sent over new connections
  OpenCalls<OpenCall> open_;
  std::vector<cudaEvent_t> events_;  // free ones
  NcclCommunicators communicators_;  // destroyed first, which ends what runs on streams
};

NcclFabric::NcclFabric(const NcclDevice& device, Store& store, int rank, int ranks,
                       std::chrono::milliseconds deadline)
    : device_{device}, store_{store}, rank_{rank}, ranks_{ranks}, communicators_{deadline} {
  require_own_gpu(device.ordinal, store, rank, ranks, deadline);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);  // collectives connect when their group is made
  word_ = device_.memory.allocate(Bytes{64});
  device_.memory.zero(word_, Bytes{64});
  device_.memory.finish();
}

NcclFabric::~NcclFabric() {
  if (!open_.empty() || std::uncaught_exceptions() > 0) {
    communicators_.abort("this rank left in the middle of a step");
  }
  cudaDeviceSynchronize();
  for (const auto& [id, each] : open_.all()) cudaEventDestroy(each.done);
  for (const NcclGroup& each : groups_) {
    if (each.ended != nullptr) cudaEventDestroy(each.ended);
  }
  for (const cudaEvent_t each : events_) cudaEventDestroy(each);
  for (const auto& [direction, lane] : directions_) cudaStreamDestroy(lane.stream);
  for (const auto& [queue, memory] : aside_) device_.memory.release(memory.first);
  device_.memory.release(word_);
}

/// Waits for the end of a stream's work; throws if its communicator has failed.
void NcclFabric::finish(Stream stream, ncclComm_t communicator, std::string_view doing) {
  const Deadline end = Clock::now() + communicators_.deadline();
  cudaError_t state = cudaStreamQuery(stream);
  for (; state == cudaErrorNotReady; state = cudaStreamQuery(stream)) {
    communicators_.require_health(communicator);
    if (Clock::now() > end) {
      throw RunFailure{Exit::deadline, fmt::format("NCCL, {}: no answer in time", doing)};
    }
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  check(state, doing);
}

GroupId NcclFabric::make_group(std::span<const int> members) {
  const auto id = static_cast<GroupId>(groups_.size());
  NcclGroup group{.members = static_cast<int>(members.size()), .index = index_in(members, rank_)};
  // A world of one has a communicator, too: NCCL was asked for, and its calls' cost is to show.
  if (group.index >= 0 && (group.members > 1 || ranks_ == 1)) {
    group.communicator =
        communicators_.make(store_, key_of(id), group.index, group.members, group_ctas);
    const Stream stream = device_.stream(Lane::data);
    communicators_.call(group.communicator, "the first call of a group", [&] {
      return ncclAllReduce(word_, word_, 1, ncclFloat32, ncclSum, group.communicator, stream);
    });
    finish(stream, group.communicator, "the first call of a group");
  }
  groups_.push_back(group);
  return id;
}

void NcclFabric::connect(GroupId group, int from, int to) {
  const int index = groups_.at(group).index;
  const TransferDirection direction{group, from, to};
  if ((index != from && index != to) || directions_.count(direction) > 0) return;
  const int streams = models::lane_count - 1 + static_cast<int>(directions_.size()) + 1;
  const std::string why = shared_connections(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), streams);
  if (!why.empty()) throw RunFailure{Exit::invalid_program, why};
  const bool sends = index == from;
  DirectionStream lane;
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making streams");
  check(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, greatest),
        "making streams");
  DirectionStream& kept = directions_.emplace(direction, lane).first->second;
  kept.communicator =
      communicators_.make(store_, key_of(direction), sends ? 0 : 1, 2, direction_ctas);
  communicators_.call(kept.communicator, "the first transfer of a channel", [&] {
    return sends ? ncclSend(word_, 4, ncclUint8, 1, kept.communicator, kept.stream)
                 : ncclRecv(word_, 4, ncclUint8, 0, kept.communicator, kept.stream);
  });
  finish(kept.stream, kept.communicator, "the first transfer of a channel");
}

/// Keeps a communicator's calls in order when they move to another queue.
void NcclFabric::keep_order(NcclGroup& group, Lane queue) {
  if (group.last && *group.last != queue) {
    check(cudaStreamWaitEvent(device_.stream(queue), group.ended, 0), "keeping order");
  }
  if (group.ended == nullptr) group.ended = event();
  group.last = queue;
}

Request NcclFabric::start(const CollectiveCall& call) {
  communicators_.refuse_if_aborted();
  NcclGroup& group = groups_.at(call.group);
  require_sound(call, group.members, group.index);
  const Stream stream = device_.stream(call.queue);
  const std::int64_t size = call.count * size_of(call.element);
  if (group.communicator == nullptr) {
    if (call.send != call.receive)
      device_.memory.copy(call.send, call.receive, Bytes{size}, call.queue);
  } else if (call.count > 0 || call.kind == Collective::all_to_all_v) {
    keep_order(group, call.queue);
    issue(group, call, stream);
    check(cudaEventRecord(group.ended, stream), "marking a collective");
  }
  return keep({.communicator = group.communicator, .queue = call.queue}, stream);
}

void NcclFabric::issue(const NcclGroup& group, const CollectiveCall& call, Stream stream) {
  CollectiveCall issued = call;
  const std::int64_t whole = call.count * size_of(call.element) * group.members;
  if (call.kind == Collective::all_to_all && call.send == call.receive) {
    issued.send = copied_aside(call, whole);
  }
  communicators_.call(group.communicator, models::name(call.kind),
                      [&] { return enqueue(issued, group.members, group.communicator, stream); });
}

/// Copies what an in-place all-to-all sends, in order on the queue, so that what arrives does not
/// overwrite it.
const std::byte* NcclFabric::copied_aside(const CollectiveCall& call, std::int64_t bytes) {
  auto& [memory, size] = aside_[call.queue];
  if (size < bytes) {
    if (memory != nullptr) device_.memory.release(memory);
    memory = device_.memory.allocate(Bytes{bytes});
    size = bytes;
  }
  device_.memory.copy(call.send, memory, Bytes{bytes}, call.queue);
  return memory;
}

Request NcclFabric::transfer(const TransferCall& call, TransferEnd end) {
  const bool sends = end == TransferEnd::sends;
  communicators_.refuse_if_aborted();
  const int index = groups_.at(call.group).index;
  ensure(index >= 0, "a rank calls in a group that it is no member of");
  const auto found = directions_.find(direction_of(call, index, sends));
  ensure(found != directions_.end(), "a transfer between ranks that were not connected");
  const DirectionStream& lane = found->second;
  const cudaEvent_t ready = event();
  check(cudaEventRecord(ready, device_.stream(call.queue)), "marking a queue");
  check(cudaStreamWaitEvent(lane.stream, ready, 0), "waiting for a queue");
  events_.push_back(ready);
  if (call.bytes > 0) {
    const auto bytes = static_cast<std::size_t>(call.bytes);
    communicators_.call(lane.communicator, sends ? "send" : "receive", [&] {
      return sends ? ncclSend(call.buffer, bytes, ncclUint8, 1, lane.communicator, lane.stream)
                   : ncclRecv(call.buffer, bytes, ncclUint8, 0, lane.communicator, lane.stream);
    });
  }
  return keep({.communicator = lane.communicator, .queue = call.queue, .transfer = true},
              lane.stream);
}

/// A free event. A wait refers to the event's last record before that wait, so an event may be
/// reused as soon as the wait is enqueued.
cudaEvent_t NcclFabric::event() {
  cudaEvent_t made = nullptr;
  if (events_.empty()) {
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making events");
    return made;
  }
  made = events_.back();
  events_.pop_back();
  return made;
}

Request NcclFabric::keep(OpenCall open, Stream stream) {
  open.done = event();
  check(cudaEventRecord(open.done, stream), "marking a call");
  return open_.keep(open);
}

bool NcclFabric::test(Request request) {
  const OpenCall& open = open_.at(request);
  communicators_.refuse_if_aborted();
  if (open.communicator != nullptr) communicators_.require_health(open.communicator);
  const cudaError_t state = cudaEventQuery(open.done);
  if (state == cudaErrorNotReady) return false;
  check(state, "asking for a call's end");
  return true;
}

void NcclFabric::wait(Request request) {
  const OpenCall open = open_.at(request);
  communicators_.refuse_if_aborted();
  if (open.communicator != nullptr) communicators_.require_health(open.communicator);
  if (open.transfer) {
    check(cudaStreamWaitEvent(device_.stream(open.queue), open.done, 0), "waiting for a transfer");
  }
  events_.push_back(open.done);
  open_.erase(request);
}

}  // namespace

void prepare_for_nccl() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

std::unique_ptr<Fabric> make_nccl_fabric(const NcclDevice& device, Store& store, int rank,
                                         int ranks, std::chrono::milliseconds deadline) {
  return std::make_unique<NcclFabric>(device, store, rank, ranks, deadline);
}

}  // namespace orrery::executor::cuda
