#pragma once
// The decisions of the NCCL fabric that need no NCCL: which direction a transfer has, whether a
// call is valid, which ranks may not run. Plain functions, tested where there is no GPU.

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "executor/fabric/fabric.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

/// One direction between two members of a group: it has a communicator and a stream of its own.
struct TransferDirection {
  GroupId group = 0;
  int from = 0, to = 0;

  friend auto operator<=>(const TransferDirection&, const TransferDirection&) = default;
};

/// The direction of a member's transfer.
inline TransferDirection direction_of(const TransferCall& call, int index, bool sends) {
  return sends ? TransferDirection{call.group, index, call.peer}
               : TransferDirection{call.group, call.peer, index};
}

/// Keys under which the members of a communicator find its id in the store.
inline std::string key_of(GroupId group) {
  return fmt::format("nccl/group/{}", group);
}
inline std::string key_of(const TransferDirection& direction) {
  return fmt::format("nccl/way/{}/{}/{}", direction.group, direction.from, direction.to);
}

/// The contract of CollectiveCall, as far as one member can see it.
/// Errors  ContractError
inline void require_sound(const CollectiveCall& call, std::int64_t members, std::int64_t index) {
  using models::Collective;
  ensure(index >= 0, "a rank calls in a group that it is no member of");
  ensure(call.count >= 0, "a collective of fewer than no elements");
  const bool sums = call.kind == Collective::all_reduce || call.kind == Collective::reduce_scatter;
  ensure(!sums || call.element != Element::byte, "bytes are not added");
  const bool known = sums || call.kind == Collective::all_gather ||
                     call.kind == Collective::broadcast || call.kind == Collective::all_to_all ||
                     call.kind == Collective::all_to_all_v;
  ensure(known, "NCCL has no such collective");
  ensure(call.root >= 0 && call.root < members, "the root of a broadcast lies outside its group");
  if (call.count == 0) return;
  const RankShares shares = shares_of(call.kind, members);
  const std::int64_t size = call.count * size_of(call.element);
  const std::byte* own_send = call.send;  // equal to own_receive in a call in place
  const std::byte* own_receive = call.receive;
  if (call.kind == Collective::reduce_scatter) own_send += index * size;
  if (call.kind == Collective::all_gather) own_receive += index * size;
  const bool apart = call.send + shares.sent * size <= call.receive ||
                     call.receive + shares.received * size <= call.send;
  ensure(apart || own_send == own_receive, "a collective's ends overlap");
}

/// The GPU of a rank, as ranks write it to the store.
struct GpuPlace {
  std::string machine{};  // differs between machines
  std::string host{};     // its name, for people
  std::string bus{};      // of the PCI bus: "0000:65:00.0"
};
inline std::string text_of(const GpuPlace& place) {
  return place.machine + "\n" + place.host + "\n" + place.bus;
}
inline GpuPlace parse_gpu_place(std::string_view text) {
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  ensure(second != std::string_view::npos, "a rank's GPU in the store cannot be read");
  return {std::string{text.substr(0, first)},
          std::string{text.substr(first + 1, second - first - 1)},
          std::string{text.substr(second + 1)}};
}

/// 22809 is "2.28.9".
/// Source  nccl.h, NCCL_VERSION
inline std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// Why NCCL will refuse ranks that share a GPU; empty: it will not. Before 2.30 it takes one rank
/// for each GPU; later versions take several where NCCL_MULTI_RANK_GPU_ENABLE says so.
inline std::string shared_gpu(const std::vector<GpuPlace>& of_ranks, int version, bool enabled) {
  constexpr int several = 23000;
  if (version >= several && enabled) return {};
  for (std::size_t b = 0; b < of_ranks.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const GpuPlace &one = of_ranks[a], &other = of_ranks[b];
      if (one.machine != other.machine || one.bus != other.bus) continue;
      return fmt::format(
          "ranks {} and {} share GPU {} of {}, and NCCL {} supports only one rank per GPU{}: start "
          "fewer ranks, or use --fabric tcp",
          a, b, other.bus, other.host, nccl_version_text(version),
          version >= several ? " unless NCCL_MULTI_RANK_GPU_ENABLE=1" : "");
    }
  }
  return {};
}

/// Why there are too few connections for all streams; empty: there are enough. Streams that share a
/// connection to the GPU wait for each other, and so would a send and the receive that it needs.
/// `connections` is CUDA_DEVICE_MAX_CONNECTIONS, 8 where it is not set.
/// Source  CUDA C++ Programming Guide, environment variables
inline std::string shared_connections(const char* connections, int streams) {
  const int most = connections == nullptr ? 8 : std::atoi(connections);
  if (most >= streams) return {};
  return fmt::format(
      "CUDA_DEVICE_MAX_CONNECTIONS={} is too few for {} streams that must not wait for each other: "
      "set it to 32, or use --fabric tcp",
      most, streams);
}

}  // namespace orrery::executor::cuda
