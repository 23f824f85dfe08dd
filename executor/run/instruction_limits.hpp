#pragma once
// How long a rank may stand at one place before it counts as stuck: 20 times as long as predicted
// there, on a machine that is as much slower than predicted as its last step was, and a minute at
// least. A factor on top of a prediction, because an instruction may meet a slow disk, a throttled
// clock or a busy neighbour and still come to its end.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "executor/run/settings.hpp"
#include "models/evaluation/priced.hpp"

namespace orrery::executor {

/// Predicted work of each instruction of a stage, without what it waits for.
std::vector<Time> predicted_work(const models::PricedProgram& priced, std::int64_t stage);

/// limit = max(least, 20 * predicted * max(1, measured step / predicted step))
///   predicted   of the instruction while the host itself works on it; of the whole step where it
///               waits for others, or for a device that it has run ahead of
/// Before the first step has been measured: `first` at least, for kernels are built and memory is
/// touched for the first time then.
class InstructionLimits {
 public:
  struct Bounds {
    std::chrono::milliseconds least{60'000}, first{600'000};
  };
  InstructionLimits(const models::PricedProgram& priced, std::int64_t stage, Time step,
                    Bounds bounds)
      : predicted_{predicted_work(priced, stage)}, step_{step}, bounds_{bounds} {}

  /// A step has taken so long.
  void measured(Time step);
  /// Safe from another thread.
  std::chrono::milliseconds at(const Progress& progress) const;

 private:
  std::vector<Time> predicted_;
  Time step_;
  Bounds bounds_;
  std::atomic<double> slower_{0};  // measured over predicted; 0: no step yet
};

}  // namespace orrery::executor
