#include <fmt/format.h>

#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

/// Order of a stage's forwards, or of its backwards, which take the chunks in reverse:
/// micro-batches go in groups of `stages`, each group through all virtual stages before the next
/// group.
class SlotOrder {
 public:
  SlotOrder(SlotKind kind, const PipelineShape& shape, std::int64_t stage)
      : kind_{kind}, shape_{shape}, stage_{stage} {}

  ScheduleSlot next() {
    const std::int64_t v = kind_ == SlotKind::forward ? v_ : shape_.virtual_stages - 1 - v_;
    const ScheduleSlot slot = slot_of(kind_, shape_, stage_, v, group_ + in_group_);
    if (++in_group_ == shape_.stages) {
      in_group_ = 0;
      if (++v_ == shape_.virtual_stages) {
        v_ = 0;
        group_ += shape_.stages;
      }
    }
    return slot;
  }

 private:
  SlotKind kind_;
  const PipelineShape& shape_;
  std::int64_t stage_;
  std::int64_t group_ = 0, v_ = 0, in_group_ = 0;
};

}  // namespace

/// Interleaved 1F1B: each stage holds several chunks of layers, which divides the bubble by their
/// number.
/// Source  Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters"
void interleaved(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  const std::int64_t depth =
      2 * (shape.stages - stage - 1) + (shape.virtual_stages - 1) * shape.stages;
  const std::int64_t warm_up = shape.micro_batches == shape.stages ? total : std::min(depth, total);
  SlotOrder forward{SlotKind::forward, shape, stage}, backward{SlotKind::backward, shape, stage};
  for (std::int64_t k = 0; k < warm_up; ++k) slots.push_back(forward.next());
  for (std::int64_t k = 0; k < total; ++k) {
    if (k + warm_up < total) slots.push_back(forward.next());
    slots.push_back(backward.next());
  }
}

std::vector<std::string> interleaved_unmet(const PipelineShape& shape) {
  std::vector<std::string> lacks;
  if (shape.stages == 1) lacks.emplace_back("pipeline above 1");
  if (shape.virtual_stages == 1) lacks.emplace_back("virtual_stages above 1");
  if (shape.micro_batches % shape.stages != 0) {
    lacks.push_back(
        fmt::format("a number of micro-batches that is a multiple of pipeline {}, found {}",
                    shape.stages, shape.micro_batches));
  }
  return lacks;
}

}  // namespace orrery::models
