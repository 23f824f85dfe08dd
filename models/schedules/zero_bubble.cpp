#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

/// 1F1B with a warm-up `depth` times as long, in which stage s defers its weight gradients by
/// `depth` x s micro-batches: later stages still have weight gradients to compute while earlier
/// ones finish their backwards.
void handcrafted(const PipelineShape& shape, std::int64_t stage, std::int64_t depth, Slots& slots) {
  const std::int64_t m = shape.micro_batches;
  const std::int64_t warm_up = std::min(depth * (shape.stages - stage - 1), m);
  const std::int64_t behind = std::min(depth * stage, m);
  const auto add = [&](SlotKind kind, std::int64_t mb) {
    slots.push_back(slot_of(kind, shape, stage, 0, mb));
  };
  for (std::int64_t mb = 0; mb < warm_up; ++mb) add(SlotKind::forward, mb);
  for (std::int64_t mb = 0; mb < m; ++mb) {
    if (mb + warm_up < m) add(SlotKind::forward, mb + warm_up);
    add(SlotKind::backward, mb);
    if (mb >= behind) add(SlotKind::weight_gradient, mb - behind);
  }
  for (std::int64_t mb = m - behind; mb < m; ++mb) add(SlotKind::weight_gradient, mb);
}

}  // namespace

/// ZB-H1: as many micro-batches are alive as in 1F1B.
///   bubble = (stages - 1) (forward + backward - weight gradient)
/// Source  Qi et al. 2023, "Zero bubble pipeline parallelism", table 2
void zero_bubble_h1(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  handcrafted(shape, stage, 1, slots);
}

/// ZB-H2: about twice as many micro-batches are alive, 2 stages - 1 on the first stage.
///   bubble = (stages - 1) (forward + backward - 2 weight gradient)
/// from a stage's first slot to its last, with at least 2 stages micro-batches. Stages begin one
/// after another, so an optimizer that waits for the norm of all gradients adds (stages - 1)
/// forward. Left out: the optimizer step that is validated afterwards (section 4 of the paper).
/// Source  Qi et al. 2023, table 2
void zero_bubble_h2(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  handcrafted(shape, stage, 2, slots);
}

}  // namespace orrery::models
