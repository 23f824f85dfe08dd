#pragma once
// The state that a block changes: when each lane is free, and when the block's input or output is
// ready. Each time is a number of picoseconds, or a row of (max,+) coefficients.

#include <array>
#include <cstdint>

#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// Number of times in that state: one for each lane, and one for the block's input, which becomes
/// that of its output.
inline constexpr int chain_states = lane_count + 1;
constexpr int state_of(Lane lane) {
  return static_cast<int>(lane);
}
inline constexpr int state_host = state_of(Lane::host), state_compute = state_of(Lane::compute),
                     state_data = state_of(Lane::data), state_io = lane_count;

template <class V>
using Chain = std::array<V, chain_states>;

/// A time in picoseconds.
struct NumberTime {
  std::int64_t value = 0;

  void raise(NumberTime other) { value = other.value > value ? other.value : value; }
  void advance(std::int64_t by) { value += by; }
};

/// Minus infinity of the (max,+) algebra: below every time, and kept there however much is added.
inline constexpr std::int64_t never = -(std::int64_t{1} << 60);

/// A time as a function of the state before: the maximum over its entries of (entry + coefficient).
struct AffineTime {
  std::array<std::int64_t, chain_states> coefficients = [] {
    std::array<std::int64_t, chain_states> none;
    none.fill(never);
    return none;
  }();

  void raise(const AffineTime& other) {
    for (int i = 0; i < chain_states; ++i) {
      const std::int64_t theirs = other.coefficients[i];
      if (theirs > coefficients[i]) coefficients[i] = theirs;
    }
  }
  void advance(std::int64_t by) {
    for (std::int64_t& each : coefficients) each = each > never / 2 ? each + by : never;
  }
};

/// When an instruction's output may be read, and when its kernels have ended, in picoseconds. The
/// two differ only for a phase.
struct InstructionTimes {
  std::int64_t output, end;
};

/// When each lane is free.
inline QueueTimes queue_times(const Chain<NumberTime>& state) {
  QueueTimes times;
  for (std::size_t i = 0; i < times.free.size(); ++i) times.free[i] = Time{state[i].value};
  return times;
}

/// The state of a rank with these lane times before a block whose input is ready at `input`.
inline Chain<NumberTime> chain_of(const QueueTimes& queues, Time input) {
  Chain<NumberTime> state;
  for (std::size_t i = 0; i < queues.free.size(); ++i) state[i].value = queues.free[i].count();
  state[state_io].value = input.count();
  return state;
}

}  // namespace orrery::models
