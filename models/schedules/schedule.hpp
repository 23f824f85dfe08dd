#pragma once
// A pipeline schedule says in which order one stage computes: slots of chunks and micro-batches.
// Transfers, reductions and buffers are added by the lowering, so a schedule cannot deadlock.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/registry.hpp"

namespace orrery::models {

struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
};

/// What a slot computes of its chunk and micro-batch.
enum class SlotKind : std::uint8_t { forward, backward };
/// As schedules are drawn: "F0 F1 B0".
inline constexpr Words<SlotKind, 2> slot_letters{
    {{SlotKind::forward, "F"}, {SlotKind::backward, "B"}}};
inline constexpr Words<SlotKind, 2> slot_words{
    {{SlotKind::forward, "forward"}, {SlotKind::backward, "backward"}}};

struct ScheduleSlot {
  SlotKind kind = SlotKind::forward;
  std::uint16_t chunk = 0;  // in model order
  std::uint32_t micro_batch = 0;
};

enum class ChunksPerStage : std::uint8_t { one, several };

/// One row of the table of schedules. Whatever asks which schedules there are, when one applies or
/// what it consists of iterates that table: conflicts, `show schedules`, searches, validation and
/// the tests' invariants.
struct Schedule {
  /// Appends the slots of one stage: each chunk of it and micro-batch once with every kind.
  void (*slots)(const PipelineShape& shape, std::int64_t stage, std::vector<ScheduleSlot>& slots);
  ChunksPerStage chunks = ChunksPerStage::one;
  bool usual = false;  // where a plan names none and a stage has so many chunks
  /// What a shape lacks for this schedule, "pipeline above 1"; empty: it runs. Null: runs any.
  std::vector<std::string> (*lacks)(const PipelineShape& shape) = nullptr;
  std::vector<SlotKind> kinds{SlotKind::forward, SlotKind::backward};
  std::string_view paper;
};

void naive(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void gpipe(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void one_f_one_b(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void interleaved(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<std::string> interleaved_lacks(const PipelineShape& shape);

/// All of them, in the open: models/schedules/builtins.cpp.
const Registry<Schedule>& builtin_schedules();

/// The schedule of a plan that names none.
std::string_view usual_schedule(std::int64_t virtual_stages);

/// One slot: the chunk of `stage` that is its virtual stage v.
inline ScheduleSlot slot_of(SlotKind kind, const PipelineShape& shape, std::int64_t stage,
                            std::int64_t v, std::int64_t micro_batch) {
  return {.kind = kind,
          .chunk = static_cast<std::uint16_t>(v * shape.stages + stage),
          .micro_batch = static_cast<std::uint32_t>(micro_batch)};
}

}  // namespace orrery::models
