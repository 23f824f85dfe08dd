#include "scenarios/search/workers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace orrery::scenarios {

namespace {

using Work = std::function<void(std::size_t, unsigned)>;

/// One parallel run over all pieces.
class ParallelRun {
 public:
  ParallelRun(std::size_t pieces, const Work& work) : pieces_{pieces}, work_{work} {}

  bool run(unsigned members, const Progress& progress) {
    running_ = members;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < members; ++i) threads.emplace_back([this, i] { run_worker(i); });
    watch(progress);
    for (std::thread& each : threads) each.join();
    if (failure_) std::rethrow_exception(failure_);
    return done_ == pieces_;
  }

 private:
  void run_worker(unsigned member) {
    try {
      for (std::size_t i = next_++; i < pieces_ && !stop_; i = next_++) {
        work_(i, member);
        ++done_;
      }
    } catch (...) {
      const std::lock_guard lock{mutex_};
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock{mutex_};
    --running_;
    left_.notify_one();
  }

  void watch(const Progress& progress) {
    constexpr std::chrono::milliseconds between{50};  // between calls of `progress`
    std::unique_lock lock{mutex_};
    while (running_ > 0) {
      left_.wait_for(lock, between, [this] { return running_ == 0; });
      if (!progress) continue;
      lock.unlock();
      if (!progress(done_, pieces_)) stop_ = true;
      lock.lock();
    }
  }

  std::size_t pieces_;
  const Work& work_;
  std::atomic<std::size_t> next_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable left_;
  unsigned running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

unsigned Workers::size() const {
  return threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

bool Workers::work_through(std::size_t pieces, const Work& work) const {
  const auto members = static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, size()));
  if (members > 1 || progress) return ParallelRun{pieces, work}.run(members, progress);
  for (std::size_t i = 0; i < pieces; ++i) work(i, 0);
  return true;
}

}  // namespace orrery::scenarios
