#pragma once
// The communication interface between ranks: collectives of a group and transfers between two
// ranks. The CPU's fabrics (threads of one process, TCP sockets, MPI) and NCCL's implement it.
//
// Contract. Every rank of the world makes the same groups in the same order, before the first step.
// Members of a group start its collectives in the same order, with equal counts. The k-th send of
// a rank to a peer matches that peer's k-th receive from it in the same group, of equal size. A
// buffer that was handed over is not touched until its request is done. One thread calls; `abort`
// alone may come from another.
//
// A fabric that cannot progress by itself (MPI, TCP) makes progress inside `test` and `wait`.
//
// Where a device has queues, a call begins after everything on its `queue`. A collective runs on
// that queue itself, a transfer concurrently with it, so that two that cross do not deadlock.
// `wait` makes the queue wait for the call, and may itself return before the call has ended.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/program/block.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// The element type of a buffer, which a sum needs. `ring` is the integers modulo 2^64.
enum class Element : std::uint8_t { byte, fp16, bf16, fp32, fp64, ring };
constexpr std::int64_t size_of(Element element) {
  constexpr std::int64_t of[] = {1, 2, 2, 4, 8, 8};
  return of[static_cast<int>(element)];
}

using GroupId = std::uint32_t;

/// One of the parts that a member sends to another in an all_to_all_v, or receives from it.
struct MemberPart {
  int member = 0;  // index in the group; its own too
  std::byte* at = nullptr;
  std::int64_t bytes = 0;
};

/// One collective of one group, as one member calls it.
///   all_reduce      count elements at `send` are summed over the members into `receive`
///   reduce_scatter  members * count elements at `send`; this member's count sums at `receive`
///   all_gather      count elements at `send`; members * count at `receive`, in member order
///   broadcast       count elements at the root's `send` to everyone's `receive`
///   all_to_all      members * count elements at `send`: count for each member, in order
///   all_to_all_v    the k-th part that `send_parts` lists for a member goes to the k-th that the
///                   member's `receive_parts` lists for this one, of equal size; `send`, `receive`
///                   and `count` are unused
/// `send` and `receive` are equal (in place) or do not overlap; in place, a member's own shard is
/// at its position in the whole (all_gather: send = receive + index * count; reduce_scatter the
/// other way round).
struct CollectiveCall {
  models::Collective kind = models::Collective::all_reduce;
  GroupId group = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::int64_t count = 0;
  Element element = Element::fp32;
  int root = 0;                                           // index in the group, of a broadcast
  models::Lane queue = models::Lane::data;                // where a device has several
  std::vector<MemberPart> send_parts{}, receive_parts{};  // of an all_to_all_v
};

/// One end of a transfer between two ranks of a group.
enum class TransferEnd : std::uint8_t { sends, receives };
struct TransferCall {
  GroupId group = 0;
  int peer = 0;  // index in the group
  std::byte* buffer = nullptr;
  std::int64_t bytes = 0;
  models::Lane queue = models::Lane::data;
};

/// A call that was started. It must be waited for exactly once.
struct Request {
  std::uint64_t id = 0;
};

/// How long the host was held up by calls that a library leaves "in progress", so that the host
/// polls them.
struct HostWaits {
  std::int64_t calls = 0, late = 0;  // all; those that were in progress when they returned
  Time waited{};                     // in all, on the host
};

/// What each member sends and receives in a collective, in multiples of `count` elements.
struct RankShares {
  std::int64_t sent = 1, received = 1;
};
constexpr RankShares shares_of(models::Collective kind, std::int64_t members) {
  switch (kind) {
    case models::Collective::reduce_scatter:
      return {members, 1};
    case models::Collective::all_gather:
      return {1, members};
    case models::Collective::all_to_all:
      return {members, members};
    default:
      return {1, 1};
  }
}

/// A rank's index among the members of a group; -1: it is no member.
inline int index_in(std::span<const int> members, int rank) {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual std::string_view name() const = 0;  // "threads", "tcp", "mpi", "nccl"
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Called by all ranks of the world, members or not, in the same order. Members are world ranks
  /// in group order, all different.
  virtual GroupId make_group(std::span<const int> members) = 0;
  /// Announces that member `from` will send to member `to`. Called like make_group, before the
  /// first such transfer, for fabrics that need a connection for each direction.
  virtual void connect(GroupId /*group*/, int /*from*/, int /*to*/) {}

  /// Start and return. Errors of all four: RunFailure (a peer vanished, aborted, the deadline).
  virtual Request start(const CollectiveCall& call) = 0;
  virtual Request transfer(const TransferCall& call, TransferEnd end) = 0;
  Request send(const TransferCall& call) { return transfer(call, TransferEnd::sends); }
  Request receive(const TransferCall& call) { return transfer(call, TransferEnd::receives); }
  /// Gives progress a chance; true once the request is done (then `wait` returns at once).
  virtual bool test(Request request) = 0;
  virtual void wait(Request request) = 0;

  /// The waits so far; nullopt where no call is ever left in progress.
  virtual std::optional<HostWaits> host_waits() const { return std::nullopt; }

  /// Ends every call in progress here with RunFailure{peer_failed}; safe from another thread.
  virtual void abort(std::string_view why) noexcept = 0;
};

}  // namespace orrery::executor
