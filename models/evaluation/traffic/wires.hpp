#pragma once
// The traffic of all jobs that is under way, with the events at which it begins and ends, its links
// change, and another job's next step begins.

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/shares.hpp"
#include "sim/radix_heap.hpp"

namespace orrery::models::traffic {

class Wires {
 public:
  /// What happens now: a template's instance has ended, a job begins its next step, or neither of
  /// them concerns any job.
  enum class Event : std::uint8_t { start, end, change, step };
  struct Happening {
    Event kind = Event::change;
    std::uint32_t id = 0;  // template, or job
  };

  explicit Wires(const Traffic& traffic);
  /// Goes on at the end of an instant of `before`, which stood for it.
  Wires(const Traffic& traffic, const EarlyTraffic& early, const Wires& before);
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  /// An instance sends nothing for `latency`, then has `fluid` of its links to itself.
  /// Errors  a start in the past: ContractError
  void begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid);
  void begin_step(std::uint32_t job, std::int64_t at) { push(Event::step, job, 0, at); }

  bool empty() const { return events_.empty(); }
  std::int64_t earliest() const { return events_.earliest(); }
  void advance(std::int64_t to);
  std::int64_t now() const { return now_; }
  bool ready() const { return events_.ready(); }
  /// The next of what happens now. What was overtaken since is `Event::change`.
  Happening next();
  /// The instant is over.
  void settle() { shares_.settle(now_); }

  std::uint64_t items() const { return items_; }
  const WireShares& shares() const { return shares_; }
  std::vector<Time> overloaded() const { return shares_.overloaded(now_); }

 private:
  static Happening happening(std::uint64_t payload);
  void push(Event kind, std::uint32_t id, std::uint32_t serial, std::int64_t at);

  const Traffic& traffic_;
  RadixHeap events_;
  WireShares shares_;
  std::vector<Time> pending_;  // fluid of a template's instance that is in its latency
  std::int64_t now_ = 0;
  std::uint64_t items_ = 0;
};

}  // namespace orrery::models::traffic
