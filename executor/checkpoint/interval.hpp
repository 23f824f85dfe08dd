#pragma once
// Decides when a checkpoint is due without a request.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orrery::executor {

/// How often checkpoints are written: every so many steps, or after so much time, or never. With
/// neither: after ten minutes, and never so often that saving takes more than 2 % of the run's
/// time. Source  ten minutes of a run that lasts days are a loss that people accept; 2 % is twice
/// what
///         Young's formula spends on a machine that fails every two days and saves in ten seconds:
///         sqrt(2 * 10 s / 48 h) = 1.1 %
struct CheckpointEvery {
  std::optional<std::int64_t> steps{};  // 0: never
  std::optional<std::chrono::milliseconds> time{};
};
/// "100" steps, "5 min", "0".
/// Errors  InputError `--checkpoint-every: expected a number of steps or a time such as "10 min",
///         found 'x'`
CheckpointEvery parse_checkpoint_every(const std::string& text);

/// The time since the last checkpoint, and what it cost.
class CheckpointInterval {
 public:
  using Time = std::chrono::steady_clock::time_point;

  CheckpointInterval(CheckpointEvery every, Time now) : every_{every}, last_{now} {}

  /// Is a checkpoint due after `done` steps?
  bool due(std::int64_t done, Time now) const;
  /// A checkpoint was written between these times.
  void saved(Time begin, Time end);

 private:
  CheckpointEvery every_;
  Time last_;  // end of the last save, or the beginning of the run
  Time::duration cost_{};
};

}  // namespace orrery::executor
