#pragma once
// A pipeline schedule states in which order a stage computes its slots: forward, backward or weight
// gradient of a chunk and micro-batch. Transfers, reductions and buffers are left out; the lowering
// adds them, so that a schedule cannot deadlock.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/registry.hpp"

namespace orrery::models {

/// Relative costs of the slots of a chunk, and the share of its activations that is held between
/// backward and weight gradient. Only schedules that optimise for them use these.
struct SlotCosts {
  double forward = 1, backward = 1, weight_gradient = 1;
  double kept = 0.5;
};

/// The size of a pipeline: what a schedule depends on.
struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
  std::vector<SlotCosts> costs{};  // by chunk; empty: equal
  std::int64_t copies = 1;         // of the model; chunks of the second follow those of the first

  std::int64_t chunks() const { return stages * virtual_stages * copies; }
};

/// What a slot computes for its chunk and micro-batch. `backward` is the input gradient only, where
/// a schedule has weight gradients in slots of their own.
enum class SlotKind : std::uint8_t { forward, backward, weight_gradient };
/// Letters in drawings of a schedule: "F0 F1 B0 W0".
inline constexpr Words<SlotKind, 3> slot_letters{
    {{SlotKind::forward, "F"}, {SlotKind::backward, "B"}, {SlotKind::weight_gradient, "W"}}};
inline constexpr Words<SlotKind, 3> slot_words{{{SlotKind::forward, "forward"},
                                                {SlotKind::backward, "backward"},
                                                {SlotKind::weight_gradient, "weight gradient"}}};

struct ScheduleSlot {
  SlotKind kind = SlotKind::forward;
  std::uint16_t chunk = 0;  // in model order
  std::uint32_t micro_batch = 0;
};

using Slots = std::vector<ScheduleSlot>;

enum class ChunksPerStage : std::uint8_t { one, several };
/// Stages of the chunks in model order. round: 0, 1, ... and again from 0; vee: up to the last
/// stage and back, so that first and last chunk are on the first stage; both_ways: two copies of
/// the model, one from the first stage to the last and one from the last to the first.
enum class Placement : std::uint8_t { round, vee, both_ways };

/// One row of the table of schedules. Conflicts, `show schedules`, searches, validation and the
/// tests' invariants all iterate that table to find which schedules exist, when one applies and
/// what it consists of.
struct Schedule {
  /// Appends the slots of one stage: every kind once for each of its chunks and micro-batches.
  void (*slots)(const PipelineShape& shape, std::int64_t stage, Slots& slots) = nullptr;
  /// Instead of `slots`: makes the slots of all stages at once, where they depend on each other.
  std::vector<Slots> (*all_stages)(const PipelineShape& shape) = nullptr;
  ChunksPerStage chunks = ChunksPerStage::one;
  Placement placement = Placement::round;
  bool is_default = false;  // the default for this number of chunks, where a plan names none
  /// What a shape lacks for this schedule, "pipeline above 1"; empty: it can run. Null: any shape
  /// can.
  std::vector<std::string> (*unmet)(const PipelineShape& shape) = nullptr;
  std::vector<SlotKind> kinds{SlotKind::forward, SlotKind::backward};
  std::string_view paper;

  bool splits_backward() const;
  /// Copies of the model in one pipeline.
  std::int64_t copies() const { return placement == Placement::both_ways ? 2 : 1; }
};

/// Kinds of a schedule with weight gradients in slots of their own.
inline const std::vector<SlotKind> split_kinds{SlotKind::forward, SlotKind::backward,
                                               SlotKind::weight_gradient};

/// The slots of every stage.
std::vector<Slots> slots_of(const Schedule& schedule, const PipelineShape& shape);
/// The stage of each chunk.
std::vector<std::int64_t> stages_of_chunks(const Schedule& schedule, const PipelineShape& shape);

/// Are weight gradients in slots of their own?
bool splits_backward(const std::vector<Slots>& all);
/// Duration of all slots by the shape's costs, without transfers; infinite if they deadlock.
double duration_of(const std::vector<Slots>& all, const PipelineShape& shape);

void naive(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void gpipe(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void one_f_one_b(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void interleaved(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<std::string> interleaved_unmet(const PipelineShape& shape);
void zero_bubble_h1(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void zero_bubble_h2(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<Slots> zero_bubble_1p(const PipelineShape& shape);
std::vector<Slots> zero_bubble_2p(const PipelineShape& shape);
void zero_bubble_v(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void dual_pipe(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void dual_pipe_v(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<std::string> vee_unmet(const PipelineShape& shape);
std::vector<std::string> dual_pipe_unmet(const PipelineShape& shape);
std::vector<std::string> dual_pipe_v_unmet(const PipelineShape& shape);

/// The table of built-in schedules: models/schedules/builtins.cpp.
const Registry<Schedule>& builtin_schedules();

/// The default schedule, for a plan that names none.
std::string_view default_schedule(std::int64_t virtual_stages);

/// A slot of the v-th chunk of `stage`, where chunks are placed round the stages.
inline ScheduleSlot slot_of(SlotKind kind, const PipelineShape& shape, std::int64_t stage,
                            std::int64_t v, std::int64_t micro_batch) {
  return {.kind = kind,
          .chunk = static_cast<std::uint16_t>(v * shape.stages + stage),
          .micro_batch = static_cast<std::uint32_t>(micro_batch)};
}

}  // namespace orrery::models
