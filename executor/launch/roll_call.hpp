#pragma once
// What rank 0 knows of all ranks from their beats, and who of them is lost or stuck. No threads and
// no clock of its own: the watchdog says when it looks.
//
// Rank 0's own absence is nobody's fault. While it was not awake (the job was paused, the machine
// swapped) no rank's time goes on, so times here are of a clock that stands still in such gaps.
//
// Who waits for another rank is never the one that is stuck, unless all wait; who burns CPU time
// with work of its own is slow, not stuck.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/vital_signs.hpp"

namespace orrery::executor {

class RollCall {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::steady_clock::duration;

  /// beat     between two beats of a rank, and two looks of rank 0
  /// silence  without a beat, a rank is lost
  RollCall(int ranks, Span beat, Span silence, Time now);

  /// Rank 0 looks: once per `beat`, if nothing holds it up.
  void look(Time now);
  void hear(int rank, const Beat& beat);

  /// A rank of which the run cannot expect anything any more, and why, in words.
  struct Finding {
    int rank = 0;
    std::string why{};
  };
  std::optional<Finding> lost() const;
  /// Of those who stand still too long: one that is silent, else one that waits for nobody; where
  /// all wait for each other, the one that has waited longest.
  std::optional<Finding> stuck() const;
  /// Once for each rank and place, at half of its limit.
  std::vector<std::string> warnings();

 private:
  struct Seen {
    Beat beat{};
    bool heard = false;
    bool warned = false;
    Span beat_at{}, place_at{};  // on the clock that stands still in gaps
  };
  Span still(const Seen& seen) const { return awake_ - seen.place_at; }
  bool silent(const Seen& seen) const { return awake_ - seen.beat_at > 3 * beat_; }
  bool waits(const Seen& seen) const { return !seen.beat.waits.empty() && !silent(seen); }
  Span limit_of(const Seen& seen) const;
  const Seen* longest_waiter() const;

  Span beat_, silence_;
  Span awake_{};
  Time last_look_;
  std::vector<Seen> seen_;
};

}  // namespace orrery::executor
