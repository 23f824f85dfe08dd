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
#include <utility>
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

/// A call in progress, which its messages keep alive. The wire outlives it.
class TcpCall : public std::enable_shared_from_this<TcpCall> {
 public:
  TcpCall(Wire& wire, Stream stream) : wire_{wire}, stream_{stream} {}
  virtual ~TcpCall() = default;

  /// Starts the messages that need no other; the call is done when all messages are.
  void run() {
    ++left_;  // so that it is not done before all have been started
    start();
    ended();
  }
  bool done() const { return left_ == 0; }

  /// Start messages to and from a rank. `then`, which may be empty, is called when one has ended,
  /// before it counts as such.
  void send(int rank, const std::byte* data, std::size_t size) {
    wire_.send(rank, stream_, data, size, counted({}));
  }
  void send(int rank, WireBlock block, std::size_t size) {
    wire_.send(rank, stream_, std::move(block), size, counted({}));
  }
  void receive(int rank, std::byte* into, std::size_t size, Wire::Done then = {}) {
    wire_.receive(rank, stream_, into, size, counted(std::move(then)));
  }
  void take(int rank, std::size_t size, Wire::Taken then) {
    ++left_;
    wire_.take(rank, stream_, size,
               [self = shared_from_this(), then = std::move(then)](WireBlock block) {
                 then(std::move(block));
                 self->ended();
               });
  }
  void give_back(WireBlock block) { wire_.give_back(std::move(block)); }

 protected:
  virtual void start() {}
  /// Called when all messages have ended.
  virtual void finish() {}

 private:
  Wire::Done counted(Wire::Done then) {
    ++left_;
    return [self = shared_from_this(), then = std::move(then)] {
      if (then) then();
      self->ended();
    };
  }
  void ended() {
    if (--left_ == 0) finish();
  }

  Wire& wire_;
  Stream stream_;
  std::size_t left_ = 0;  // messages still to be sent or received
};

/// What a collective needs to run. The wire and the group outlive it.
struct CollectiveJob {
  Wire& wire;
  const TcpGroup& group;
  CollectiveCall call{};
  Stream stream = 0;

  int members() const { return static_cast<int>(group.members.size()); }
  /// A member, counted from the first again after the last; and its rank in the world.
  int wrapped(int member) const { return (member % members() + members()) % members(); }
  int rank_of(int member) const { return group.members[static_cast<std::size_t>(wrapped(member))]; }
};

/// A collective in progress.
class TcpCollective : public TcpCall {
 public:
  explicit TcpCollective(const CollectiveJob& job) : TcpCall{job.wire, job.stream}, job_{job} {}

 protected:
  CollectiveJob job_;
};

template <class Collective>
std::shared_ptr<TcpCall> started(const CollectiveJob& job) {
  const auto collective = std::make_shared<Collective>(job);
  collective->run();
  return collective;
}

/// Starts a collective; its messages keep it alive.
/// Errors  a kind that fabrics do not have: ContractError
std::shared_ptr<TcpCall> start_collective(const CollectiveJob& job);

std::shared_ptr<TcpCall> start_direct(const CollectiveJob& job);
std::shared_ptr<TcpCall> start_parts(const CollectiveJob& job);
std::shared_ptr<TcpCall> start_ring(const CollectiveJob& job);
std::shared_ptr<TcpCall> start_chain(const CollectiveJob& job);

/// Bytes of a ring message: small enough for the caches, large enough to amortise a system call.
inline constexpr std::int64_t ring_chunk = 256 << 10;

}  // namespace orrery::executor
