#include "models/schedules/schedule.hpp"

namespace orrery::models {

/// A model cut into stages without pipelining: one micro-batch is in flight at a time.
void naive(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots) {
  for (std::int64_t mb = 0; mb < shape.micro_batches; ++mb) {
    slots.push_back(slot_of(SlotKind::forward, shape, stage, 0, mb));
    slots.push_back(slot_of(SlotKind::backward, shape, stage, 0, mb));
  }
}

}  // namespace orrery::models
