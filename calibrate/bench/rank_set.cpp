#include "calibrate/bench/rank_set.hpp"

#include <algorithm>
#include <numeric>

#include "calibrate/machine.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

RankSet::RankSet(int ranks, const Make& make, const BenchTools& tools)
    : threads{ranks},
      barrier{ranks},
      members_(rank_index(ranks)),
      benches_(rank_index(ranks)),
      core_{ranks <= usable_cores() ? SegmentTimer::Core::own : SegmentTimer::Core::shared} {
  std::vector<int> all(rank_index(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<executor::GroupId> groups(all.size());
  threads.all([&](int rank) {
    RankParts& own = members_[rank_index(rank)] = make(rank, ranks);
    if (own.fabric) {
      groups[rank_index(rank)] = own.fabric->make_group(all);
      if (ranks > 1) own.fabric->connect(groups[rank_index(rank)], 0, 1);
    }
    benches_[rank_index(rank)] =
        std::make_unique<Bench>(*own.device, tools.clock, tools.monitor, tools.sizes);
  });
  group_ = groups.front();
}

RankSet::~RankSet() {
  threads.all([&](int rank) {
    benches_[rank_index(rank)].reset();
    members_[rank_index(rank)].fabric.reset();
    members_[rank_index(rank)].device.reset();
  });
}

void TimedSubject::prepare() {
  std::fill(host_times_.begin(), host_times_.end(), Time{});
  repeats_ = 1;
  set_up();
  Bench& bench = ranks_.bench(0);
  if (repeated() && bench.sizes().most_repeats > 1) {
    std::vector<Time> once(parts());
    for (int i = 0; i < 2; ++i) run(once);
    repeats_ = bench.repeats_for(*std::ranges::max_element(once));
  }
  bench.monitor().forget();
}

bool TimedSubject::run(std::vector<Time>& times) {
  ClockMonitor& monitor = ranks_.bench(0).monitor();
  const bool before = monitor.throttled();
  std::vector<std::vector<Time>> found(host_times_.size());
  ranks_.threads.all([&](int rank) {
    ranks_.barrier.wait();
    SegmentTimer timer{ranks_.bench(rank), queue_, host_times_[rank_index(rank)], ranks_.core()};
    enqueue(rank, timer);
    found[rank_index(rank)] = timer.finish();
    host_times_[rank_index(rank)] = timer.host_time();
  });
  times.assign(parts(), Time{});
  for (const std::vector<Time>& of_rank : found) {
    ensure(of_rank.size() == parts(), "a lap ends every part");
    for (std::size_t p = 0; p < parts(); ++p) {
      times[p] = over_ == Over::slowest ? std::max(times[p], of_rank[p]) : times[p] + of_rank[p];
    }
  }
  const std::int64_t shares =
      repeats_ * (over_ == Over::slowest ? 1 : static_cast<std::int64_t>(found.size()));
  for (Time& each : times) each = std::max(Time{1}, Time{each.count() / shares});
  return !before && !monitor.throttled();
}

void TimedSubject::finish() {
  conditions_ = ranks_.bench(0).monitor().seen();
  tear_down();
}

}  // namespace orrery::calibrate
