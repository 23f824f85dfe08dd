#include "scenarios/whole_run/pool.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace orrery::scenarios {

namespace {

constexpr double microseconds_per_day = 86'400e6;

bool earlier(const NodeEvent& a, const NodeEvent& b) {
  const auto key = [](const NodeEvent& each) {
    return std::tuple{each.at, each.change == NodeChange::down, each.node};
  };
  return key(a) < key(b);
}

}  // namespace

std::vector<NodeEvent> read_node_events(const Table& table) {
  table.require({"event", "node"});
  const bool days = table.has("time_days");
  if (!days) table.require({"time_ms"});
  std::vector<NodeEvent> events;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row row = table[i];
    const auto at = row.number(days ? "time_days" : "time_ms");
    const auto node = row.integer("node");
    const std::string_view word = row.text("event");
    const bool down = word == "fault_start" || word == "remove";
    if (!at || *at < 0) row.fail_expected(days ? "time_days" : "time_ms", "a time of 0 or more");
    if (!node) row.fail_expected("node", "a number");
    if (!down && word != "fault_end" && word != "add") {
      row.fail_expected("event", "fault_start, fault_end, add or remove");
    }
    events.push_back({.at = nearest_count<RunTime>(*at * (days ? microseconds_per_day : 1e3)),
                      .change = down ? NodeChange::down : NodeChange::up,
                      .node = *node,
                      .kind = std::string{row.text("class")}});
  }
  return events;
}

namespace {

/// The fleet's job between events.
class FleetRun {
 public:
  FleetRun(const std::vector<NodeEvent>& events, const FleetReplay& job)
      : job_{job}, open_(static_cast<std::size_t>(job.nodes), 0) {
    std::set<std::int64_t> failing;
    for (const NodeEvent& each : events) failing.insert(each.node);
    std::size_t next = 0;
    for (const std::int64_t node : failing) place_[node] = next++;
    take_nodes();
  }

  void pass_to(RunTime time) {
    time = std::min(time, job_.horizon);
    while (now_ < time) {
      RunTime end = time;
      if (until_) end = std::min(end, *until_);
      if (state_ == State::waiting) waited_ += end - now_;
      now_ = end;
      if (until_ && now_ == *until_) finish();
    }
  }

  void happen(const NodeEvent& event) {
    const auto found = place_.find(event.node);
    if (found == place_.end() || found->second >= open_.size()) return;
    int& open = open_[found->second];
    const bool down = event.change == NodeChange::down;
    open += down ? 1 : -1;
    if (down && open >= 1 && state_ != State::waiting && active_.contains(found->second)) {
      ++interruptions_;
      take_nodes();
    } else if (!down && state_ == State::waiting) {
      take_nodes();
    }
  }

  FleetAnswer answer() {
    RunTime progress = saved_;
    if (state_ == State::working) progress += now_ - began_;
    if (state_ == State::saving) progress += job_.interval;
    return {.ettr = ratio(progress, job_.horizon),
            .waiting = ratio(waited_, job_.horizon),
            .interruptions = interruptions_};
  }

 private:
  enum class State : std::uint8_t { waiting, restarting, working, saving };

  void take_nodes() {
    active_.clear();
    for (std::size_t i = 0; i < open_.size() && std::ssize(active_) < job_.active; ++i) {
      if (open_[i] <= 0) active_.insert(i);
    }
    const bool first = interruptions_ == 0 && now_.count() == 0 && state_ == State::waiting;
    if (std::ssize(active_) < job_.active) {
      state_ = State::waiting;
      until_.reset();
    } else if (first) {
      begin_work();
    } else {
      state_ = State::restarting;
      until_ = now_ + job_.restart;
    }
  }

  void begin_work() {
    state_ = State::working;
    began_ = now_;
    until_ = now_ + job_.interval;
  }

  void finish() {
    if (state_ == State::working) {
      state_ = State::saving;
      until_ = now_ + job_.stall;
      return;
    }
    if (state_ == State::saving) saved_ += job_.interval;
    begin_work();
  }

  const FleetReplay& job_;
  std::map<std::int64_t, std::size_t> place_;
  std::vector<int> open_;
  std::set<std::size_t> active_;
  State state_ = State::waiting;
  std::optional<RunTime> until_;
  RunTime now_{}, began_{}, saved_{}, waited_{};
  std::int64_t interruptions_ = 0;
};

}  // namespace

FleetAnswer replay(std::vector<NodeEvent> events, const FleetReplay& job) {
  std::ranges::sort(events, earlier);
  const RunTime zero = events.empty() ? RunTime{} : events.front().at;
  FleetRun run{events, job};
  for (const NodeEvent& each : events) {
    if (each.at - zero >= job.horizon) break;
    run.pass_to(each.at - zero);
    run.happen(each);
  }
  run.pass_to(job.horizon);
  return run.answer();
}

namespace {

class ElasticRun {
 public:
  ElasticRun(const ElasticJob& job, std::int64_t work) : job_{job}, work_{work} {}

  bool finished() const { return answer_.ledger.useful >= work_; }

  void pass_to(RunTime time) {
    while (!finished() && (now_ < time || (until_ && *until_ <= time))) {
      const RunTime end = until_ ? std::min(time, *until_) : time;
      book(end - now_);
      now_ = end;
      if (until_ && now_ == *until_)
        finish_state();
      else
        break;
    }
  }

  /// All events of one time.
  void happen(const std::vector<NodeEvent>& together) {
    bool lost = false;
    for (const NodeEvent& each : together) {
      if (each.change == NodeChange::up)
        pool_.insert(each.node);
      else if (pool_.erase(each.node) > 0)
        lost = lost || active_.contains(each.node);
    }
    if (lost && state_ != State::waiting) {
      if (job_.notice > job_.stall) keep_work();
      begin(size_for_pool());
    } else if (state_ == State::waiting && size_for_pool() > 0) {
      begin(size_for_pool());
    }
  }

  ElasticAnswer answer() {
    drop_work();
    answer_.length = now_;
    answer_.finished = finished();
    return answer_;
  }

 private:
  enum class State : std::uint8_t { waiting, reconfiguring, working, saving };

  std::int64_t size_for_pool() const {
    const std::int64_t there = std::ssize(pool_);
    const std::int64_t size = std::min(job_.to, there / job_.unit * job_.unit);
    return size >= job_.from ? size : 0;
  }

  void book(RunTime time) {
    const std::int64_t of_active = time.count() * std::ssize(active_);
    answer_.ledger.unused += time.count() * std::ssize(pool_) - of_active;
    if (state_ == State::reconfiguring) answer_.ledger.reconfiguration += of_active;
    if (state_ == State::working) unsaved_ += of_active;
    if (state_ == State::saving) saving_ += of_active;
  }

  void keep_work() {
    answer_.ledger.useful += unsaved_;
    answer_.ledger.checkpoints += saving_;
    unsaved_ = saving_ = 0;
  }
  void drop_work() {
    answer_.ledger.lost += unsaved_ + saving_;
    unsaved_ = saving_ = 0;
  }

  void begin(std::int64_t size) {
    drop_work();
    ++answer_.changes;
    active_.clear();
    for (const std::int64_t node : pool_) {
      if (std::ssize(active_) == size) break;
      active_.insert(node);
    }
    state_ = size > 0 ? State::reconfiguring : State::waiting;
    until_.reset();
    if (size == 0) return;
    changed_ = now_;
    until_ = now_ + job_.reconfigure;
  }

  void finish_state() {
    if (state_ == State::working) {
      state_ = State::saving;
      until_ = now_ + job_.stall;
      return;
    }
    if (state_ == State::saving) {
      keep_work();
      const bool may_grow = now_ - changed_ >= job_.hold;
      if (may_grow && size_for_pool() > std::ssize(active_)) return begin(size_for_pool());
    }
    state_ = State::working;
    until_ = now_ + job_.interval;
  }

  const ElasticJob& job_;
  std::int64_t work_ = 0;
  std::set<std::int64_t> pool_, active_;
  State state_ = State::waiting;
  std::optional<RunTime> until_;
  RunTime now_{}, changed_{};
  std::int64_t unsaved_ = 0, saving_ = 0;
  ElasticAnswer answer_;
};

}  // namespace

ElasticAnswer run_elastic(std::vector<NodeEvent> events, const ElasticJob& job, RunTime horizon,
                          std::int64_t work) {
  std::ranges::stable_sort(events, {}, &NodeEvent::at);
  ElasticRun run{job, work};
  for (std::size_t i = 0; i < events.size() && !run.finished();) {
    std::vector<NodeEvent> together;
    for (const RunTime at = events[i].at; i < events.size() && events[i].at == at; ++i) {
      together.push_back(events[i]);
    }
    if (together.front().at > horizon) break;
    run.pass_to(together.front().at);
    if (!run.finished()) run.happen(together);
  }
  run.pass_to(horizon);
  return run.answer();
}

std::vector<NodeEvent> draw_market(const SpotMarket& market, RunTime horizon, Draws& draws) {
  std::vector<NodeEvent> events;
  std::set<std::int64_t> there;
  std::multimap<RunTime, std::int64_t> returning;
  for (std::int64_t n = 0; n < market.nodes; ++n) {
    events.push_back({RunTime{}, NodeChange::up, n});
    there.insert(n);
  }
  // A drop takes 1, 2, ... nodes, geometrically distributed; together they are taken at the rate.
  const double drops_per_hour =
      market.per_node_hour * static_cast<double>(market.nodes) / market.drop;
  if (drops_per_hour <= 0) return events;
  RunTime now;
  while (now < horizon) {
    const RunTime next = now + run_time(Seconds{draws.exponential() * 3600 / drops_per_hour});
    while (!returning.empty() && returning.begin()->first <= next) {
      const auto [at, node] = *returning.begin();
      events.push_back({at, NodeChange::up, node});
      there.insert(node);
      returning.erase(returning.begin());
    }
    now = next;
    std::int64_t taken = 1;
    while (draws.uniform() > 1 / market.drop) ++taken;
    for (; taken > 0 && !there.empty(); --taken) {
      const auto which =
          static_cast<std::ptrdiff_t>(draws.bits() % static_cast<std::uint64_t>(there.size()));
      const std::int64_t node = *std::next(there.begin(), which);
      there.erase(node);
      events.push_back({now, NodeChange::down, node});
      returning.emplace(now + run_time(Seconds{draws.exponential() * market.refill.count()}), node);
    }
  }
  return events;
}

}  // namespace orrery::scenarios
