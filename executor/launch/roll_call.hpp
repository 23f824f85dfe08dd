#pragma once
// Which ranks are lost or stuck, as rank 0 infers from their heartbeats. No thread and no clock of
// its own: the watchdog calls it with the time.
//
// Time in which rank 0 itself did not run (the job was paused, the machine swapped) counts against
// no rank: times here are of a clock that stops in such gaps.
//
// A rank that waits for another is not the one that is stuck, unless all wait; a rank that uses CPU
// time for work of its own is slow, not stuck, up to its limit or ten minutes, whichever is longer:
// then it spins (a library that tries again for ever to get memory).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/vital_signs.hpp"

namespace orrery::executor {

/// The heartbeats of all ranks.
class RollCall {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::steady_clock::duration;

  /// beat     between two beats of a rank, and two looks of rank 0
  /// silence  without a beat, a rank is lost
  RollCall(int ranks, Span beat, Span silence, Time now);

  /// Advances the time. Rank 0 calls it once per `beat`, if nothing holds it up.
  void look(Time now);
  void hear(int rank, const Beat& beat);

  /// A rank that is lost or stuck, and why, in words.
  std::optional<std::string> lost() const;
  /// Of the ranks that stayed at one place too long: one without heartbeats, else one that waits
  /// for no other; one that uses CPU time but stayed far too long; where all wait for each other,
  /// the one that has waited longest.
  std::optional<std::string> stuck() const;
  /// One warning for each rank and place, at half of the rank's limit; and one at half of the time
  /// that it may be busy there.
  std::vector<std::string> warnings();

 private:
  struct RankState {
    Beat beat{};
    bool heard = false;
    bool warned = false, warned_busy = false;
    Span beat_at{}, place_at{};  // on the clock that stops in gaps; CPU time counts as a new place
    Span moved_at{};             // ... it does not
  };
  Span still(const RankState& seen) const { return awake_ - seen.place_at; }
  Span busy(const RankState& seen) const { return awake_ - seen.moved_at; }
  bool silent(const RankState& seen) const { return awake_ - seen.beat_at > 3 * beat_; }
  bool waits(const RankState& seen) const { return !seen.beat.waits.empty() && !silent(seen); }
  Span limit_of(const RankState& seen) const;
  Span busy_limit_of(const RankState& seen) const;
  const RankState* longest_waiter() const;
  const RankState* spinner() const;

  Span beat_, silence_;
  Span awake_{};
  Time last_look_;
  std::vector<RankState> seen_;
};

}  // namespace orrery::executor
