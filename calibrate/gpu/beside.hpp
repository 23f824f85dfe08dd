#pragma once
// Two queues of one device at once: what each takes longer for the other's sake. Of either, pieces
// are timed that lie wholly beside the other's.

#include <functional>

#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// Work that can be enqueued again and again.
struct Piece {
  models::Lane queue = models::Lane::compute;
  std::function<void()> enqueue;
};

/// Times of one piece.
struct Beside {
  Time kernel{}, other{};                // alone
  Time kernel_beside{}, other_beside{};  // beside the other
};

/// How often pieces are there; the same on all ranks of a collective.
struct BesideCounts {
  int kernel = 1, other = 1;  // that are timed
};
/// So many that each lasts for about `span`. Forgets the device's marks.
BesideCounts counts_for(executor::Device& device, const Piece& kernel, const Piece& other,
                        Time span);
/// Of pieces that last for about this long by themselves.
inline constexpr Time span_beside = 4_ms;
/// Median of `looks`. Forgets the device's marks.
Beside measure_beside(executor::Device& device, const Piece& kernel, const Piece& other,
                      const BesideCounts& counts, int looks = 5);

}  // namespace orrery::calibrate
