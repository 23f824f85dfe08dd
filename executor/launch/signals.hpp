#pragma once
// What signals ask of a run: SIGINT (Ctrl-C) and SIGTERM to end, SIGUSR1 to write a checkpoint and
// make room. A run that writes checkpoints ends after its step; asked again, at once.

#include <chrono>

namespace orrery::executor {

/// A signal that comes again within this is the same wish: a terminal, a launcher and our parent
/// may each pass it on.
inline constexpr std::chrono::milliseconds same_wish{500};

/// Listens while it is there. SIGPIPE and SIGXFSZ are ignored: writes fail with a reason instead.
class SignalWishes {
 public:
  SignalWishes();
  ~SignalWishes();
  SignalWishes(const SignalWishes&) = delete;
  SignalWishes& operator=(const SignalWishes&) = delete;

  /// From here on the first SIGINT or SIGTERM is answered after the step, with a checkpoint.
  static void answer_after_the_step();

  /// SIGINT or SIGTERM, whichever came first; or 0.
  static int end();
  /// ... and nothing is to be waited for any more.
  static bool at_once();
  static bool checkpoint();
  /// Readable once the run is to end at once: for waits (interruption.hpp).
  static int descriptor();
};

}  // namespace orrery::executor
