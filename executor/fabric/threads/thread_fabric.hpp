#pragma once
// The fabric of ranks that are threads of one process. The last participant of a collective or a
// transfer carries it out for all; the others find it done. Sums are taken in member order.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

/// The state that the ranks share. It outlives the fabrics that it makes.
class ThreadWorld {
 public:
  /// A rank that waits longer than `deadline` for its peers gives up: RunFailure{deadline}.
  explicit ThreadWorld(int ranks, std::chrono::milliseconds deadline = std::chrono::minutes{1});
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  int ranks() const { return ranks_; }
  /// The fabric of one rank, for one thread.
  std::unique_ptr<Fabric> fabric(int rank);
  /// Every rank's calls fail from now on.
  void abort(std::string_view why) noexcept;

 private:
  friend class ThreadFabric;

  /// A collective or a transfer, until all participants have called.
  struct WaitingCall {
    std::vector<CollectiveCall> calls;  // by member
    std::byte* first = nullptr;         // of a transfer: the buffer of the side that called first
    std::int64_t bytes = 0;             // of a transfer
    std::size_t arrived = 0;
    bool done = false;
  };
  using Shared = std::shared_ptr<WaitingCall>;
  struct ThreadGroup {
    std::vector<int> members;
    std::map<std::uint64_t, Shared> collectives;  // by the number of calls that a member made
    std::map<std::pair<int, int>, std::deque<Shared>> sends, receives;  // unmatched, by (from, to)
  };

  GroupId make_group(std::uint64_t number, std::span<const int> members);
  Shared join(const CollectiveCall& call, std::uint64_t number, int rank);
  Shared transfer(const TransferCall& call, int rank, bool sends);
  bool test(const WaitingCall& call);
  void wait(const WaitingCall& call);
  void finish(WaitingCall& call);
  void refuse_if_aborted() const;

  const int ranks_;
  const std::chrono::milliseconds deadline_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<ThreadGroup> groups_;
  bool aborted_ = false;
  std::string why_;
};

}  // namespace orrery::executor
