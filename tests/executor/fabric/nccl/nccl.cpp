// The functions of NCCL that the NCCL fabric calls: a communicator is a world of threads.

#include <nccl.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "tests/executor/fabric/nccl/stand_in.hpp"

namespace exec = orrery::executor;
using exec::CollectiveCall;
using exec::Element;
using exec::TransferCall;
using orrery::models::Collective;

namespace {

/// Where the members of one communicator meet.
struct Meeting {
  explicit Meeting(int members) : world{members, std::chrono::seconds{20}} {}
  exec::ThreadWorld world;
  std::atomic<int> arrived{0}, finalized{0};
};

std::mutex lock;
std::map<std::string, std::shared_ptr<Meeting>> meetings;  // by unique id
int ids = 0;

Element element_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return Element::fp16;
    case ncclBfloat16:
      return Element::bf16;
    case ncclFloat32:
      return Element::fp32;
    case ncclFloat64:
      return Element::fp64;
    case ncclUint64:
      return Element::ring;
    default:
      return Element::byte;
  }
}

}  // namespace

std::atomic<int>& exec::destroyed_early() {
  static std::atomic<int> count{0};
  return count;
}

struct ncclComm {
  std::shared_ptr<Meeting> meeting;
  int members = 1;
  std::unique_ptr<exec::Fabric> fabric;
  exec::GroupId group = 0;
  std::atomic<int> looks{2};  // for which the last call is still in progress
  bool finalized = false;
};

namespace {

/// A call that is being put on a stream.
struct Call {
  ncclComm* communicator;
  cudaStream_t stream;
  std::string_view name;
  std::vector<exec::QueuedDevice::Touch> touches;
  std::function<exec::Request(exec::Fabric&)> start;
};

thread_local int groups_open = 0;
thread_local std::vector<Call> grouped;

/// All of them begin before any is waited for.
ncclResult_t launch(const std::vector<Call>& calls) {
  ncclComm* const communicator = calls.front().communicator;
  cudaStream_t const stream = calls.front().stream;
  std::vector<exec::QueuedDevice::Touch> touches;
  for (const Call& each : calls) {
    touches.insert(touches.end(), each.touches.begin(), each.touches.end());
  }
  communicator->looks = 2;
  stream->device->enqueue(stream->lane, calls.front().name, touches, [communicator, calls] {
    std::vector<exec::Request> open;
    for (const Call& each : calls) open.push_back(each.start(*communicator->fabric));
    for (const exec::Request& each : open) communicator->fabric->wait(each);
  });
  return ncclInProgress;
}

ncclResult_t put(Call call) {
  if (groups_open == 0) return launch({std::move(call)});
  grouped.push_back(std::move(call));
  return ncclSuccess;
}

ncclResult_t collective(Collective kind, const void* send, void* receive, std::size_t count,
                        ncclDataType_t type, int root, ncclComm* communicator,
                        cudaStream_t stream) {
  const CollectiveCall call{.kind = kind,
                            .group = communicator->group,
                            .send = static_cast<const std::byte*>(send),
                            .receive = static_cast<std::byte*>(receive),
                            .count = static_cast<std::int64_t>(count),
                            .element = element_of(type),
                            .root = root};
  const std::int64_t size = call.count * size_of(call.element);
  const std::int64_t whole = size * communicator->members;
  return put({communicator,
              stream,
              orrery::models::name(kind),
              {{call.send, kind == Collective::reduce_scatter ? whole : size, false},
               {call.receive, kind == Collective::all_gather ? whole : size, true}},
              [call](exec::Fabric& fabric) { return fabric.start(call); }});
}

ncclResult_t transfer(bool sends, std::byte* buffer, std::size_t count, ncclDataType_t type,
                      int peer, ncclComm* communicator, cudaStream_t stream) {
  const TransferCall call{.group = communicator->group,
                          .peer = peer,
                          .buffer = buffer,
                          .bytes = static_cast<std::int64_t>(count) * size_of(element_of(type))};
  return put({communicator,
              stream,
              sends ? "send" : "receive",
              {{buffer, call.bytes, !sends}},
              [call, sends](exec::Fabric& fabric) {
                return sends ? fabric.send(call) : fabric.receive(call);
              }});
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard guard{lock};
  std::memset(id, 0, sizeof *id);
  ++ids;
  std::memcpy(id, &ids, sizeof ids);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int members, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;
  const std::lock_guard guard{lock};
  std::shared_ptr<Meeting>& meeting = meetings[std::string(id.internal, sizeof id.internal)];
  if (!meeting) meeting = std::make_shared<Meeting>(members);
  *made =
      new ncclComm{.meeting = meeting, .members = members, .fabric = meeting->world.fabric(rank)};
  std::vector<int> all(static_cast<std::size_t>(members));
  std::iota(all.begin(), all.end(), 0);
  (*made)->group = (*made)->fabric->make_group(all);
  ++meeting->arrived;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const auto& meeting = *communicator->meeting;
  const bool ended = !communicator->finalized || meeting.finalized >= communicator->members;
  const bool met = meeting.arrived >= communicator->members && ended;
  *state = met && communicator->looks.fetch_sub(1) <= 0 ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
/// Lanes may still be in it: its memory is left, as the process ends soon.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  communicator->meeting->world.abort("aborted");
  return ncclSuccess;
}
/// Done once all members have come.
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  communicator->finalized = true;
  communicator->looks = 2;
  ++communicator->meeting->finalized;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const bool over = communicator->finalized && communicator->looks < 0 &&
                    communicator->meeting->finalized >= communicator->members;
  exec::destroyed_early() += over ? 0 : 1;
  delete communicator;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "an error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclGroupStart() {
  ++groups_open;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--groups_open > 0 || grouped.empty()) return ncclSuccess;
  const std::vector<Call> calls = std::move(grouped);
  grouped.clear();
  return launch(calls);
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t communicator, cudaStream_t stream) {
  return collective(Collective::all_reduce, send, receive, count, type, 0, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t, ncclComm_t communicator,
                               cudaStream_t stream) {
  return collective(Collective::reduce_scatter, send, receive, count, type, 0, communicator,
                    stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return collective(Collective::all_gather, send, receive, count, type, 0, communicator, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return collective(Collective::broadcast, send, receive, count, type, root, communicator, stream);
}
ncclResult_t ncclSend(const void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(buffer));
  return transfer(true, from, count, type, peer, communicator, stream);
}
ncclResult_t ncclRecv(void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  auto* const to = static_cast<std::byte*>(buffer);
  return transfer(false, to, count, type, peer, communicator, stream);
}

}  // extern "C"
