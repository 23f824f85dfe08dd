#include "models/schedules/schedule.hpp"

namespace orrery::models {

/// GPipe: all forwards, then all backwards in reverse order. Activations of every micro-batch are
/// alive at once.
/// Source  Huang et al. 2019, "GPipe"
void gpipe(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots) {
  for (std::int64_t mb = 0; mb < shape.micro_batches; ++mb) {
    slots.push_back(slot_of(SlotKind::forward, shape, stage, 0, mb));
  }
  for (std::int64_t mb = shape.micro_batches; mb-- > 0;) {
    slots.push_back(slot_of(SlotKind::backward, shape, stage, 0, mb));
  }
}

}  // namespace orrery::models
