#include <fmt/format.h>

#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

/// The k-th forward (or backward, chunks reversed) of any stage: micro-batches in groups of
/// `stages`, each group through all virtual stages before the next.
ScheduleSlot nth(SlotKind kind, const PipelineShape& shape, std::int64_t stage, std::int64_t k) {
  const std::int64_t group = shape.stages * shape.virtual_stages;
  const std::int64_t v = k % group / shape.stages;
  const std::int64_t mb = k / group * shape.stages + k % shape.stages;
  return slot_of(kind, shape, stage, kind == SlotKind::forward ? v : shape.virtual_stages - 1 - v,
                 mb);
}

}  // namespace

/// Each stage holds several chunks of layers, which divides the bubble by their number.
/// Source  Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters"
void interleaved(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  const std::int64_t depth =
      2 * (shape.stages - stage - 1) + (shape.virtual_stages - 1) * shape.stages;
  const std::int64_t warm_up = shape.micro_batches == shape.stages ? total : std::min(depth, total);
  for (std::int64_t k = 0; k < warm_up; ++k) {
    slots.push_back(nth(SlotKind::forward, shape, stage, k));
  }
  for (std::int64_t k = 0; k < total; ++k) {
    if (k + warm_up < total) slots.push_back(nth(SlotKind::forward, shape, stage, k + warm_up));
    slots.push_back(nth(SlotKind::backward, shape, stage, k));
  }
}

std::vector<std::string> interleaved_lacks(const PipelineShape& shape) {
  std::vector<std::string> lacks;
  if (shape.stages == 1) lacks.emplace_back("pipeline above 1");
  if (shape.virtual_stages == 1) lacks.emplace_back("virtual_stages above 1");
  if (shape.micro_batches % shape.stages != 0) {
    lacks.push_back(fmt::format("micro-batches in multiples of pipeline {}, there are {}",
                                shape.stages, shape.micro_batches));
  }
  return lacks;
}

}  // namespace orrery::models
