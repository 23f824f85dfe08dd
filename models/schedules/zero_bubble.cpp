#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

/// 1F1B whose warm-up is `depth` times as long, and whose stages fall behind with weight gradients
/// the further, the later they begin: so that all have some left when the others' backward ends.
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

/// As many micro-batches alive as in 1F1B.
///   bubble = (stages - 1) (forward + backward - weight gradient)
/// Source  Qi et al. 2023, "Zero bubble pipeline parallelism", table 2
void zero_bubble_h1(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  handcrafted(shape, stage, 1, slots);
}

/// About twice as many: 2 stages - 1 on the first.
///   bubble = (stages - 1) (forward + backward - 2 weight gradient)
/// from a stage's first slot to its last, with 2 stages micro-batches and more. Stages begin one
/// after another: the optimizer that waits for the norm of all gradients adds (stages - 1) forward.
/// Left out: the optimizer step that is checked afterwards instead (section 4 of the paper).
/// Source  Qi et al. 2023, table 2
void zero_bubble_h2(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  handcrafted(shape, stage, 2, slots);
}

}  // namespace orrery::models
