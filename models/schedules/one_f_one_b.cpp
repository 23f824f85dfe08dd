#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

/// 1F1B (PipeDream-flush): stages - stage - 1 forwards to warm up, then one forward and one
/// backward in turn, so that at most stages - stage micro-batches are alive.
/// Source  Narayanan et al. 2021, "Memory-efficient pipeline-parallel DNN training"
void one_f_one_b(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots) {
  const std::int64_t m = shape.micro_batches;
  const std::int64_t warm_up = std::min(shape.stages - stage - 1, m);
  for (std::int64_t mb = 0; mb < warm_up; ++mb) {
    slots.push_back(slot_of(SlotKind::forward, shape, stage, 0, mb));
  }
  for (std::int64_t mb = 0; mb < m; ++mb) {
    if (mb + warm_up < m) {
      slots.push_back(slot_of(SlotKind::forward, shape, stage, 0, mb + warm_up));
    }
    slots.push_back(slot_of(SlotKind::backward, shape, stage, 0, mb));
  }
}

}  // namespace orrery::models
