#pragma once
// Requests to a run that is going on: to end (SIGINT, SIGTERM), or to write a checkpoint and make
// room (SIGUSR1). A run that writes checkpoints ends after its step; if asked again, at once.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace orrery::executor {

/// A request that is repeated within this time is the same request: a terminal, a launcher and the
/// parent process may each pass it on.
inline constexpr std::chrono::milliseconds same_request{500};

/// The requests so far. Any thread may make and read them, and so may a signal handler.
class StopRequests {
 public:
  StopRequests();
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  /// signal  SIGINT or SIGTERM
  void ask_to_end(int signal) noexcept;
  void ask_for_checkpoint() noexcept { checkpoint_ = true; }

  /// From here on the first request to end is answered after the step, with a checkpoint.
  void answer_after_the_step() noexcept { patient_ = true; }

  /// SIGINT or SIGTERM, whichever came first; or 0.
  int end() const noexcept { return end_; }
  /// Is the run to end at once, without waiting for anything?
  bool at_once() const noexcept { return at_once_; }
  bool checkpoint() const noexcept { return checkpoint_; }
  /// Readable once the run is to end at once: for waits (interruption.hpp).
  int descriptor() const noexcept { return descriptor_; }

 private:
  std::atomic<int> end_{0};
  std::atomic<bool> checkpoint_{false}, at_once_{false}, patient_{false};
  std::atomic<std::int64_t> first_{0};  // when the first request to end came, in nanoseconds
  int descriptor_ = -1;
};

/// While it exists, SIGINT, SIGTERM and SIGUSR1 of this process are requests. SIGPIPE and SIGXFSZ
/// are ignored: writes fail with a reason instead. One at a time; afterwards all five have their
/// default actions.
class SignalRequests {
 public:
  explicit SignalRequests(StopRequests& requests);
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;
};

}  // namespace orrery::executor
