#pragma once
// How long a rank may stay at one instruction before the watchdog counts it as stuck: 20 times the
// predicted time, scaled by how much slower than predicted the last step was, and a minute at
// least. The factor leaves room for a slow disk, a throttled clock or a busy neighbour, which delay
// an instruction without stopping it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "executor/run/settings.hpp"
#include "models/evaluation/priced.hpp"

namespace orrery::executor {

/// Predicted busy time of each instruction of a stage, without the time that it waits.
std::vector<Time> predicted_work(const models::PricedProgram& priced, std::int64_t stage);

/// Time limits for the instructions of one stage.
///   limit = max(least, 20 * predicted * max(1, measured step / predicted step))
///   predicted   of the instruction while the host itself works on it; of the whole step where it
///               waits for others, or for a device that it has run ahead of
/// Before the first step has been measured the limit is `first` at least, because kernels are built
/// and memory is touched for the first time then.
class InstructionLimits {
 public:
  struct Bounds {
    std::chrono::milliseconds least{60'000}, first{600'000};
  };
  InstructionLimits(const models::PricedProgram& priced, std::int64_t stage, Time step,
                    Bounds bounds)
      : predicted_{predicted_work(priced, stage)}, step_{step}, bounds_{bounds} {}

  /// Takes the duration of the step that has just ended.
  void measured(Time step);
  /// Safe from another thread.
  std::chrono::milliseconds at(const Progress& progress) const;

 private:
  std::vector<Time> predicted_;
  Time step_;
  Bounds bounds_;
  std::atomic<double> slower_{0};  // step time, measured over predicted; 0: no step yet
};

}  // namespace orrery::executor
