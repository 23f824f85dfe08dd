#pragma once
// Progress on stderr if that is a terminal; Ctrl-C or SIGTERM asks the command to stop and report
// its results so far.

#include <string>

#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// While an instance exists, the first Ctrl-C or SIGTERM is only recorded; a second one ends the
/// program as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  /// 130 after Ctrl-C, 143 after SIGTERM, else 0.
  static int exit_code();
};

/// Rewrites one line on a terminal and prints nothing elsewhere; asks its caller to stop once
/// interrupted.
/// noun  what is counted: "plans"
Progress watched_progress(std::string noun);

}  // namespace orrery::scenarios
