#pragma once
// Ranks that run concurrently, one thread each; the caller's thread is rank 0. Together they load
// the machine as a plan with that many ranks on it does.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace orrery::calibrate {

constexpr std::size_t rank_index(int rank) {
  return static_cast<std::size_t>(rank);
}

class ConcurrentRanks {
 public:
  explicit ConcurrentRanks(int ranks);
  ~ConcurrentRanks();
  ConcurrentRanks(const ConcurrentRanks&) = delete;
  ConcurrentRanks& operator=(const ConcurrentRanks&) = delete;

  int ranks() const { return static_cast<int>(threads_.size()) + 1; }
  /// Every rank runs `work(rank)` on its own thread; returns when all have. A rank's exception
  /// is thrown here, the first one of several.
  void all(const std::function<void(int)>& work);

 private:
  void serve(int rank);
  void do_part(const std::function<void(int)>& work, int rank);

  std::mutex lock_;
  std::condition_variable changed_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool over_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

/// A barrier that yields the core while it waits, as there may be more ranks than cores.
class Barrier {
 public:
  explicit Barrier(int ranks) : ranks_{ranks} {}
  void wait();

 private:
  const int ranks_;
  std::mutex lock_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace orrery::calibrate
