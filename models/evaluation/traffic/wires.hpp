#pragma once
// The active traffic of all jobs, and the events of an evaluation: traffic begins or ends, a link
// changes its capacity, or another job begins its next step.

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/shares.hpp"
#include "sim/radix_heap.hpp"

namespace orrery::models::traffic {

class Wires {
 public:
  /// An event of the current instant. `end` (of a template's instance) and `step` (a job begins its
  /// next one) are for the jobs; `start` and `change` concern none of them.
  enum class Event : std::uint8_t { start, end, change, step };
  struct Happening {
    Event kind = Event::change;
    std::uint32_t id = 0;  // template, or job
  };

  explicit Wires(const Traffic& traffic);
  /// Continues from `before`, whose templates stand for those here, at the end of one of its
  /// instants.
  Wires(const Traffic& traffic, const EarlyTraffic& early, const Wires& before);
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  /// Begins an instance: from `start` it sends nothing for `latency`, then its fluid part, which
  /// takes `fluid` at full rate.
  /// Errors  a start in the past: ContractError
  void begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid);
  void begin_step(std::uint32_t job, std::int64_t at) { push(Event::step, job, 0, at); }

  bool empty() const { return events_.empty(); }
  std::int64_t earliest() const { return events_.earliest(); }
  void advance(std::int64_t to);
  std::int64_t now() const { return now_; }
  bool ready() const { return events_.ready(); }
  /// The next event of the current instant. An end that was scheduled anew since is returned as
  /// `Event::change`.
  Happening next();
  /// Ends the current instant.
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
  std::vector<Time> pending_;  // by template: fluid part of an instance that is in its latency
  std::int64_t now_ = 0;
  std::uint64_t items_ = 0;
};

}  // namespace orrery::models::traffic
