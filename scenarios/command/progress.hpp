#pragma once
// Progress on stderr where that is a terminal, and Ctrl-C or SIGTERM as a request to stop with what
// there is.

#include <string>

#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// While it lives, the first Ctrl-C or SIGTERM is remembered; a second one ends the program as
/// usual.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  static bool interrupted();
  /// 130 after Ctrl-C, 143 after SIGTERM, else 0.
  static int exit_code();
};

/// Rewrites one line on a terminal, silent elsewhere; says stop once interrupted.
/// noun  what is counted: "plans"
Progress watched_progress(std::string noun);

}  // namespace orrery::scenarios
