#pragma once
// The active traffic of all jobs, and the events of an evaluation: traffic begins or ends, a link
// changes its capacity, or another job begins its next step.

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/link_shares.hpp"
#include "sim/radix_heap.hpp"

namespace orrery::models::traffic {

class TrafficEvents {
 public:
  /// `end` (of what a flow class sends) and `step` (a job begins its next one) are for the jobs;
  /// `start` of a fluid part and `change` of a link concern none of them.
  enum class Kind : std::uint8_t { start, end, change, step };
  struct Occurrence {
    Kind kind = Kind::change;
    std::uint32_t id = 0;  // flow class, or job
  };

  explicit TrafficEvents(const Traffic& traffic);
  /// Continues from `before`, whose flow classes stand for those here, at the end of one of its
  /// instants.
  TrafficEvents(const Traffic& traffic, const PrefixTraffic& prefix, const TrafficEvents& before);
  TrafficEvents(const TrafficEvents&) = delete;
  TrafficEvents& operator=(const TrafficEvents&) = delete;

  /// A flow class begins a collective or transfer: from `start` it sends nothing for `latency`,
  /// then its fluid part, which takes `fluid` at its wire rate.
  /// Errors  a start in the past: ContractError
  void begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid);
  void begin_step(std::uint32_t job, std::int64_t at) { push(Kind::step, job, 0, at); }

  bool empty() const { return queue_.empty(); }
  std::int64_t earliest() const { return queue_.earliest(); }
  void advance(std::int64_t to);
  std::int64_t now() const { return now_; }
  bool ready() const { return queue_.ready(); }
  /// The next event of the current instant. An end that was scheduled anew since is returned as
  /// `Kind::change`.
  Occurrence next();
  /// Ends the current instant.
  void settle() { shares_.settle(now_); }

  /// Collectives and transfers begun so far.
  std::uint64_t transmissions() const { return transmissions_; }
  const LinkShares& shares() const { return shares_; }
  std::vector<Time> overloaded() const { return shares_.overloaded(now_); }

 private:
  static Occurrence event(std::uint64_t payload);
  void push(Kind kind, std::uint32_t id, std::uint32_t serial, std::int64_t at);

  const Traffic& traffic_;
  RadixHeap queue_;
  LinkShares shares_;
  std::vector<Time> pending_;  // by flow class: the fluid part, during the latency
  std::int64_t now_ = 0;
  std::uint64_t transmissions_ = 0;
};

}  // namespace orrery::models::traffic
