#pragma once
// When a checkpoint is due without a request.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace orrery::executor {

/// Every so many steps, or after so much time, or never. With neither: after ten minutes, and never
/// so often that saving takes more than 2 % of the run's time.
/// Source  ten minutes of a run that lasts days are what people lose without a word; 2 % is twice
///         what Young's formula spends on a machine that fails every two days and saves in ten
///         seconds: sqrt(2 * 10 s / 48 h) = 1.1 %
struct CheckpointEvery {
  std::optional<std::int64_t> steps{};  // 0: never
  std::optional<std::chrono::milliseconds> time{};
};
/// "100" steps, "5 min", "0".
/// Errors  InputError `--checkpoint-every: expected a number of steps or a time such as "10 min",
///         found 'x'`
CheckpointEvery parse_checkpoint_every(const std::string& text);

class CheckpointInterval {
 public:
  using Time = std::chrono::steady_clock::time_point;

  CheckpointInterval(CheckpointEvery every, Time now) : every_{every}, last_{now} {}

  /// After `done` steps.
  bool due(std::int64_t done, Time now) const;
  /// One was written.
  void saved(Time begin, Time end);

 private:
  CheckpointEvery every_;
  Time last_;  // end of the last save, or the beginning of the run
  Time::duration cost_{};
};

}  // namespace orrery::executor
