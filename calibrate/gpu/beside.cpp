#include "calibrate/gpu/beside.hpp"

#include <algorithm>
#include <vector>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

namespace {

using executor::Device;
using executor::Mark;

/// Pieces of the other kind for each timed one's time: the timed ones end first even where they
/// take three times as long as alone.
constexpr int cover = 4;

Time one_of(Device& device, Mark begin, Mark end, int count) {
  device.finish();
  const Time taken = device.time_of(end) - device.time_of(begin);
  device.forget_marks();
  return std::max(Time{1}, Time{taken.count() / count});
}

Time alone(Device& device, const Piece& piece, int count) {
  const Mark begin = device.mark(piece.queue);
  for (int i = 0; i < count; ++i) piece.enqueue();
  return one_of(device, begin, device.mark(piece.queue), count);
}

Time beside(Device& device, const Piece& timed, int count, const Piece& covering, int covers) {
  covering.enqueue();
  device.wait(timed.queue, device.mark(covering.queue));
  for (int i = 0; i < cover * covers; ++i) covering.enqueue();
  const Mark begin = device.mark(timed.queue);
  for (int i = 0; i < count; ++i) timed.enqueue();
  return one_of(device, begin, device.mark(timed.queue), count);
}

int fitting(Time span, Time once) {
  constexpr std::int64_t most = 64;
  return static_cast<int>(std::clamp<std::int64_t>(span.count() / once.count(), 1, most));
}

}  // namespace

BesideCounts counts_for(Device& device, const Piece& kernel, const Piece& other, Time span) {
  alone(device, kernel, 1);  // warms up
  alone(device, other, 1);
  const Time one_kernel = alone(device, kernel, 2), one_other = alone(device, other, 2);
  return {.kernel = fitting(span, one_kernel), .other = fitting(span, one_other)};
}

Beside measure_beside(Device& device, const Piece& kernel, const Piece& other,
                      const BesideCounts& counts, int looks) {
  std::vector<Time> of[4];
  for (int i = 0; i < looks; ++i) {
    of[0].push_back(alone(device, kernel, counts.kernel));
    of[1].push_back(alone(device, other, counts.other));
    of[2].push_back(beside(device, kernel, counts.kernel, other, counts.other));
    of[3].push_back(beside(device, other, counts.other, kernel, counts.kernel));
  }
  return {.kernel = quantile(of[0], 0.5),
          .other = quantile(of[1], 0.5),
          .kernel_beside = quantile(of[2], 0.5),
          .other_beside = quantile(of[3], 0.5)};
}

}  // namespace orrery::calibrate
