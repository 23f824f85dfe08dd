#pragma once
// What the evaluations of a priced Program answer: when its transfers and collectives were, and
// when each rank's lanes became free.

#include <array>
#include <cstdint>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Lane times of one rank: when each becomes free.
struct QueueTimes {
  std::array<Time, lane_count> free{};

  Time& operator[](Lane lane) { return free[static_cast<std::size_t>(lane)]; }
  Time operator[](Lane lane) const { return free[static_cast<std::size_t>(lane)]; }
  friend bool operator==(const QueueTimes&, const QueueTimes&) = default;
  Time last() const;
};

/// The latest times of the members of a tensor group, all of one speed, as they began a phase.
struct UnitEntry {
  std::uint32_t phase = 0;  // instruction of their list
  QueueTimes latest;
  Time input{};
};

/// Collectives inside the phases of one rank class, of phases in which others decide their times.
struct InsideTimes {
  std::vector<std::uint32_t> phases;  // instructions of its list, ascending
  std::vector<Time> starts, ends;     // of all collectives inside them, in order
  std::vector<UnitEntry> units;       // of other phases, ascending: its tensor group's
};

/// What an evaluation found.
struct StepTimes {
  Time step{};                    // end of the last rank, or the bound
  std::vector<QueueTimes> ranks;  // at the end of the step, by rank class
  /// Ends of transfers, by channel in channel order.
  std::vector<std::vector<Time>> transfers;
  /// Starts of joint collectives.
  std::vector<Time> collective_starts;
  /// Of sweeps: when a rank of each class was ready for each of its joint collectives, launched and
  /// computed, in the order of its list.
  std::vector<std::vector<Time>> collectives_ready;

  // Where traffic shares links, or ranks of a class differ: of one replica of each class. Empty
  // elsewhere, where they follow from the prices.
  std::vector<Time> collective_ends;               // as collective_starts
  std::vector<std::vector<Time>> transfer_starts;  // as transfers
  std::vector<InsideTimes> inside;                 // by rank class
  std::vector<double> speeds;                      // by rank class, of its GPU: 1 as priced

  Time collective_end(const PricedProgram& priced, std::size_t joint) const {
    return collective_ends.empty() ? collective_starts[joint] + priced.collectives[joint].duration
                                   : collective_ends[joint];
  }
  Time transfer_start(const PricedProgram& priced, std::size_t channel, std::size_t k) const {
    return transfer_starts.empty() ? transfers[channel][k] - priced.channels[channel]
                                   : transfer_starts[channel][k];
  }

  /// The last end on any rank, whatever the bound.
  Time scheduled() const;
};

/// One sweep with blocks as (max,+) maps; the fast way. Equal layers are powers of one map.
/// Errors  a schedule that cannot proceed: ContractError naming the stage and instruction
StepTimes evaluate_maps(const PricedProgram& priced);

}  // namespace orrery::models
