#pragma once
// Ranks that work at the same time: one thread each, waiting between pieces of work. What all of
// them do at once is what a plan with so many ranks on one machine does.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace orrery::calibrate {

class Team {
 public:
  explicit Team(int ranks);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int ranks() const { return static_cast<int>(threads_.size()); }
  /// Every rank does `work(rank)` on its own thread; returns when all have. A rank's exception
  /// comes out here, the first one of several.
  void all(const std::function<void(int)>& work);

 private:
  void serve(int rank);

  std::mutex lock_;
  std::condition_variable changed_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool over_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

/// All ranks are here before any goes on; they give their core away while they wait, as there may
/// be more ranks than cores.
class Gate {
 public:
  explicit Gate(int ranks) : ranks_{ranks} {}
  void pass();

 private:
  const int ranks_;
  std::mutex lock_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace orrery::calibrate
