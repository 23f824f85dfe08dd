#pragma once
// Collectives over a Wire, each a state machine that its messages drive. Sums are taken in an order
// that depends on the group and the count alone, so every run gives the same bits, and every member
// the same ones.
//
//   direct  every member sends every other one its part at once: one hop, for small messages and
//           all-to-all. Sums are in member order.
//   ring    parts go round in chunks, each forwarded as soon as it has arrived; 2(n-1)/n of the
//           buffer crosses each link in an all-reduce. Part p is summed from member p+1 on to p.
//           Source  Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms"
//   parts   each part is one message to its member: all-to-all-v
//   chain   a broadcast, in chunks from the root through all members.

#include <memory>
#include <vector>

#include "executor/fabric/fabric.hpp"
#include "executor/fabric/tcp/wire.hpp"

namespace orrery::executor {

/// A group as one member sees it.
struct TcpGroup {
  std::vector<int> members{};
  int index = -1;                 // of this rank; -1: it is no member
  std::uint64_t collectives = 0;  // started so far
};

/// A call in progress: done when `left`, the messages still to be sent or received, is 0.
struct InProgress {
  virtual ~InProgress() = default;
  std::size_t left = 0;
};

/// What a collective needs to run. The wire and the group outlive it.
struct CollectiveJob {
  Wire& wire;
  const TcpGroup& group;
  CollectiveCall call{};
  Stream stream = 0;
};

/// Starts a collective; its messages keep it alive.
/// Errors  a kind that fabrics do not have: ContractError
std::shared_ptr<InProgress> start_collective(const CollectiveJob& job);

std::shared_ptr<InProgress> start_direct(const CollectiveJob& job);
std::shared_ptr<InProgress> start_parts(const CollectiveJob& job);
std::shared_ptr<InProgress> start_ring(const CollectiveJob& job);
std::shared_ptr<InProgress> start_chain(const CollectiveJob& job);

/// Bytes of a ring message: small enough for the caches, large enough to amortise a system call.
inline constexpr std::int64_t ring_chunk = 256 << 10;

}  // namespace orrery::executor
