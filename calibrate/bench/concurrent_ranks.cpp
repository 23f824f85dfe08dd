#include "calibrate/bench/concurrent_ranks.hpp"

#include "sim/errors.hpp"

namespace orrery::calibrate {

ConcurrentRanks::ConcurrentRanks(int ranks) {
  ensure(ranks >= 1, "a team has a rank");
  for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
}

ConcurrentRanks::~ConcurrentRanks() {
  {
    const std::lock_guard held{lock_};
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void ConcurrentRanks::serve(int rank) {
  std::uint64_t seen = 0;
  while (true) {
    const std::function<void(int)>* work = nullptr;
    {
      std::unique_lock held{lock_};
      changed_.wait(held, [&] { return over_ || round_ != seen; });
      if (over_) return;
      seen = round_;
      work = work_;
    }
    do_part(*work, rank);
  }
}

void ConcurrentRanks::do_part(const std::function<void(int)>& work, int rank) {
  std::exception_ptr failed;
  try {
    work(rank);
  } catch (...) {
    failed = std::current_exception();
  }
  const std::lock_guard held{lock_};
  if (failed && !failure_) failure_ = failed;
  if (--busy_ == 0) changed_.notify_all();
}

void ConcurrentRanks::all(const std::function<void(int)>& work) {
  {
    const std::lock_guard held{lock_};
    work_ = &work;
    failure_ = nullptr;
    busy_ = ranks();
    ++round_;
  }
  changed_.notify_all();
  do_part(work, 0);
  std::unique_lock held{lock_};
  changed_.wait(held, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void Barrier::wait() {
  std::unique_lock held{lock_};
  if (++waiting_ == ranks_) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  const std::uint64_t mine = round_;
  changed_.wait(held, [&] { return round_ != mine; });
}

}  // namespace orrery::calibrate
