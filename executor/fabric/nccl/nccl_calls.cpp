#include "executor/fabric/nccl/nccl_calls.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "executor/device/cuda/errors.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/nccl/nccl_rules.hpp"

namespace orrery::executor::cuda {

namespace {

using models::Collective;

ncclDataType_t nccl_type_of(Element element) {
  switch (element) {
    case Element::fp16:
      return ncclFloat16;
    case Element::bf16:
      return ncclBfloat16;
    case Element::fp32:
      return ncclFloat32;
    case Element::fp64:
      return ncclFloat64;
    case Element::ring:
      return ncclUint64;
    case Element::byte:
      break;
  }
  return ncclUint8;
}

/// Identifies this process's GPU. A boot id belongs to one machine, in whatever container.
GpuPlace place_of(int ordinal) {
  GpuPlace place;
  std::ifstream{"/proc/sys/kernel/random/boot_id"} >> place.machine;
  std::array<char, 256> host{}, bus{};
  ::gethostname(host.data(), host.size() - 1);
  place.host = host.data();
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal),
        "asking for its place");
  place.bus = bus.data();
  return place;
}

/// Sends and receives within one NCCL group, so that none of them waits for another.
ncclResult_t all_to_all_v(const std::vector<MemberPart>& sent,
                          const std::vector<MemberPart>& received, ncclComm_t communicator,
                          Stream stream) {
  ncclResult_t status = ncclGroupStart();
  const auto add = [&](ncclResult_t made) {
    if (status == ncclSuccess && made != ncclInProgress) status = made;
  };
  for (const MemberPart& each : sent) {
    const auto bytes = static_cast<std::size_t>(each.bytes);
    add(ncclSend(each.at, bytes, ncclUint8, each.member, communicator, stream));
  }
  for (const MemberPart& each : received) {
    const auto bytes = static_cast<std::size_t>(each.bytes);
    add(ncclRecv(each.at, bytes, ncclUint8, each.member, communicator, stream));
  }
  const ncclResult_t ended = ncclGroupEnd();
  return status == ncclSuccess ? ended : status;
}

/// A buffer as one part of `size` bytes for each member.
std::vector<MemberPart> equal_parts(std::byte* buffer, std::int64_t size, int members) {
  std::vector<MemberPart> parts;
  for (int member = 0; member < members; ++member) {
    parts.push_back({member, buffer + member * size, size});
  }
  return parts;
}

}  // namespace

ncclResult_t enqueue(const CollectiveCall& call, int members, ncclComm_t communicator,
                     Stream stream) {
  const auto count = static_cast<std::size_t>(call.count);
  const std::int64_t size = call.count * size_of(call.element);
  const ncclDataType_t type = nccl_type_of(call.element);
  switch (call.kind) {
    case Collective::all_reduce:
      return ncclAllReduce(call.send, call.receive, count, type, ncclSum, communicator, stream);
    case Collective::reduce_scatter:
      return ncclReduceScatter(call.send, call.receive, count, type, ncclSum, communicator, stream);
    case Collective::all_gather:
      return ncclAllGather(call.send, call.receive, count, type, communicator, stream);
    case Collective::broadcast:
      return ncclBroadcast(call.send, call.receive, count, type, call.root, communicator, stream);
    case Collective::all_to_all:
      return all_to_all_v(equal_parts(const_cast<std::byte*>(call.send), size, members),
                          equal_parts(call.receive, size, members), communicator, stream);
    case Collective::all_to_all_v:
      return all_to_all_v(call.send_parts, call.receive_parts, communicator, stream);
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::send_receive:
      break;
  }
  return ncclInvalidUsage;
}

void require_own_gpu(int ordinal, Store& store, int rank, int ranks,
                     std::chrono::milliseconds patience) {
  const auto key = [](int of) { return fmt::format("nccl/gpu/{}", of); };
  store.set(key(rank), text_of(place_of(ordinal)));
  std::vector<GpuPlace> all;
  for (int each = 0; each < ranks; ++each) {
    all.push_back(parse_gpu_place(store.get(key(each), patience)));
  }
  int version = 0;
  ncclGetVersion(&version);
  const char* enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool several = enabled != nullptr && std::string_view{enabled} == "1";
  const std::string why = shared_gpu(all, version, several);
  if (!why.empty()) throw RunFailure{Exit::invalid_program, why};
}

}  // namespace orrery::executor::cuda
