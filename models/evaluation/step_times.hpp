#pragma once
// The result of evaluating a priced Program: when its transfers and collectives ran, and when each
// rank's lanes became free. Single operations are not kept; replay.hpp finds them again.

#include <array>
#include <cstdint>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// When each lane of one rank becomes free.
struct QueueTimes {
  std::array<Time, lane_count> free{};

  Time& operator[](Lane lane) { return free[static_cast<std::size_t>(lane)]; }
  Time operator[](Lane lane) const { return free[static_cast<std::size_t>(lane)]; }
  friend bool operator==(const QueueTimes&, const QueueTimes&) = default;
  Time last() const;
};

/// How a tensor group whose ranks have one speed began a phase: of each lane, and of the phase's
/// input, the latest time over its members.
struct UnitEntry {
  std::uint32_t phase = 0;  // the instruction that runs it, in the members' list
  QueueTimes latest;
  Time input{};
};

/// Times of collectives inside phases of one rank class, for the phases in which other ranks or
/// shared links determine them.
struct InsideTimes {
  std::vector<std::uint32_t> phases;  // instructions of its list, ascending
  std::vector<Time> starts, ends;     // of all collectives inside them, in order
  std::vector<UnitEntry> units;       // of other phases, ascending: how its tensor group began them
};

/// The times that an evaluation found.
struct StepTimes {
  Time step{};                    // the last end on any rank, or the bound if that is later
  std::vector<QueueTimes> ranks;  // at the end of the step, by rank class
  /// Ends of transfers: for each channel, in its order.
  std::vector<std::vector<Time>> transfers;
  /// Starts of joint collectives.
  std::vector<Time> collective_starts;
  /// Set by sweeps alone: when a rank of each class was ready for each of its joint collectives
  /// (launched, with its input computed), in the order of its list.
  std::vector<std::vector<Time>> collectives_ready;

  // Only where traffic shares links or ranks of a class differ: times of one replica of each class.
  // Elsewhere empty, because they follow from the prices.
  std::vector<Time> collective_ends;               // as collective_starts
  std::vector<std::vector<Time>> transfer_starts;  // as transfers
  std::vector<InsideTimes> inside;                 // by rank class
  std::vector<double> speeds;  // by rank class: relative speed of its GPU, 1 as priced

  Time collective_end(const PricedProgram& priced, std::size_t joint) const {
    return collective_ends.empty() ? collective_starts[joint] + priced.collectives[joint].duration
                                   : collective_ends[joint];
  }
  Time transfer_start(const PricedProgram& priced, std::size_t channel, std::size_t k) const {
    return transfer_starts.empty() ? transfers[channel][k] - priced.channels[channel]
                                   : transfer_starts[channel][k];
  }

  /// The last end on any rank, without the bound.
  Time scheduled() const;
};

/// The fast evaluation: one sweep in which every phase is a (max,+) map and equal layers are powers
/// of one block's map.
/// Errors  a schedule that cannot proceed: ContractError naming the stage and instruction
StepTimes evaluate_maps(const PricedProgram& priced);

}  // namespace orrery::models
