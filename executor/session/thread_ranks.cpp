// All ranks of a run as threads of this process.

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "executor/launch/private_folder.hpp"
#include "executor/launch/process_name.hpp"
#include "executor/session/rank_session.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::milliseconds between_calls{50};

class RankThreads {
 public:
  RankThreads(const Session& session, int ranks)
      : session_{session},
        world_{ranks, forever},
        server_{unused_socket(), {.job = job, .ranks = ranks}},
        codes_(static_cast<std::size_t>(ranks), Exit::our_fault),
        thrown_(codes_.size()),
        running_{ranks} {}

  Exit run() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      threads.emplace_back([this, rank] { run_rank(rank); });
    }
    wait();
    for (std::thread& each : threads) each.join();
    for (const std::exception_ptr& each : thrown_) {
      if (each) std::rethrow_exception(each);
    }
    for (const Exit code : codes_) {
      if (code != Exit::done && code != Exit::peer_failed) return code;
    }
    return *std::max_element(codes_.begin(), codes_.end());
  }

 private:
  static constexpr std::chrono::hours forever{24 * 365};  // the watchdog ends waits
  static constexpr const char* job = "threads";

  void run_rank(int rank) {
    name_thread(rank);
    const Placement placed{
        .launcher = Launcher::orrery, .rank = rank, .ranks = world_.ranks(), .job = job};
    const auto at = static_cast<std::size_t>(rank);
    try {
      codes_[at] = run_one(session_, placed, ThreadRanks{&world_, server_.address()});
    } catch (...) {  // before the ranks were connected
      thrown_[at] = std::current_exception();
    }
    const std::lock_guard guard{lock_};
    --running_;
    ended_.notify_one();
  }

  void wait() {
    std::unique_lock guard{lock_};
    while (!ended_.wait_for(guard, between_calls, [this] { return running_ == 0; })) {
      guard.unlock();
      if (session_.events.waiting) session_.events.waiting();
      guard.lock();
    }
  }

  const Session& session_;
  ThreadWorld world_;
  const StoreServer server_;
  std::vector<Exit> codes_;                 // by rank
  std::vector<std::exception_ptr> thrown_;  // by rank
  std::mutex lock_;
  std::condition_variable ended_;
  int running_;
};

}  // namespace

Exit run_threads(const Session& session, int ranks) {
  return RankThreads{session, ranks}.run();
}

}  // namespace orrery::executor
