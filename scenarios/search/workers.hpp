#pragma once
// Runs many independent pieces of work on several threads, with progress and a way to stop.

#include <cstddef>
#include <functional>

namespace orrery::scenarios {

/// Called about every 50 ms and at the end, by the thread that waits; false stops the remaining
/// work.
using Progress = std::function<bool(std::size_t done, std::size_t all)>;

struct Workers {
  unsigned threads = 0;  // 0: as many as the machine has
  Progress progress;

  unsigned size() const;

  /// Calls work(piece, member) once for every piece of [0, pieces), in no particular order;
  /// `member` is a thread's number in [0, size()). Returns whether all pieces were done; they are
  /// not if `progress` asked to stop. An exception of a piece is rethrown here and ends the rest.
  bool work_through(std::size_t pieces,
                    const std::function<void(std::size_t piece, unsigned member)>& work) const;
};

}  // namespace orrery::scenarios
