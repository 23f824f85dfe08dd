#pragma once
// Many independent pieces of work on several threads, with progress and a way to stop.

#include <cstddef>
#include <functional>

namespace orrery::scenarios {

/// Called now and then, and at the end, by the thread that waits; false stops the rest.
using Progress = std::function<bool(std::size_t done, std::size_t all)>;

struct Workers {
  unsigned threads = 0;  // 0: as many as the machine has
  Progress progress;

  unsigned size() const;

  /// work(piece, member) for every piece of [0, pieces), each once, in no order; `member` is one of
  /// [0, size()) and works on one piece at a time. Returns whether all were done: those not done
  /// when progress said stop are left. What a piece throws is thrown here, and ends the rest.
  bool work_through(std::size_t pieces,
                    const std::function<void(std::size_t piece, unsigned member)>& work) const;
};

}  // namespace orrery::scenarios
