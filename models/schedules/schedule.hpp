#pragma once
// A pipeline schedule says in which order one stage computes: slots of chunks and micro-batches.
// Transfers, reductions and buffers are added by the lowering, so a schedule cannot deadlock.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/registry.hpp"

namespace orrery::models {

/// What the slots of a chunk cost in relation to each other, and which share of its activations is
/// held between backward and weight gradient: for schedules that weigh them.
struct SlotCosts {
  double forward = 1, backward = 1, weight_gradient = 1;
  double kept = 0.5;
};

struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
  std::vector<SlotCosts> costs{};  // by chunk; empty: all alike
  std::int64_t copies = 1;         // of the model, whose chunks are numbered one after another

  std::int64_t chunks() const { return stages * virtual_stages * copies; }
};

/// What a slot computes of its chunk and micro-batch.
enum class SlotKind : std::uint8_t { forward, backward, weight_gradient };
/// As schedules are drawn: "F0 F1 B0 W0".
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
/// Where chunks stand, in model order: round the stages; down them and up again, so that the first
/// and the last chunk are on the first stage; or twice, a copy of the model down and one up.
enum class Placement : std::uint8_t { round, vee, both_ways };

/// One row of the table of schedules. Whatever asks which schedules there are, when one applies or
/// what it consists of iterates that table: conflicts, `show schedules`, searches, validation and
/// the tests' invariants.
struct Schedule {
  /// Appends the slots of one stage: each chunk of it and micro-batch once with every kind.
  void (*slots)(const PipelineShape& shape, std::int64_t stage, Slots& slots) = nullptr;
  /// ... or makes those of all stages, where they are weighed against each other.
  std::vector<Slots> (*together)(const PipelineShape& shape) = nullptr;
  ChunksPerStage chunks = ChunksPerStage::one;
  Placement placement = Placement::round;
  bool usual = false;  // where a plan names none and a stage has so many chunks
  /// What a shape lacks for this schedule, "pipeline above 1"; empty: it runs. Null: runs any.
  std::vector<std::string> (*lacks)(const PipelineShape& shape) = nullptr;
  std::vector<SlotKind> kinds{SlotKind::forward, SlotKind::backward};
  std::string_view paper;

  bool splits_backward() const;
  /// Of the model that its stages hold together.
  std::int64_t copies() const { return placement == Placement::both_ways ? 2 : 1; }
};

/// With weight gradients in slots of their own.
inline const std::vector<SlotKind> split_kinds{SlotKind::forward, SlotKind::backward,
                                               SlotKind::weight_gradient};

/// The slots of every stage.
std::vector<Slots> slots_of(const Schedule& schedule, const PipelineShape& shape);
/// The stage of each chunk.
std::vector<std::int64_t> stages_of_chunks(const Schedule& schedule, const PipelineShape& shape);

/// Have weight gradients slots of their own?
bool splits_backward(const std::vector<Slots>& all);
/// How long all slots take by the shape's costs, without transfers; infinite where they wait for
/// each other.
double duration_of(const std::vector<Slots>& all, const PipelineShape& shape);

void naive(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void gpipe(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void one_f_one_b(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void interleaved(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<std::string> interleaved_lacks(const PipelineShape& shape);
void zero_bubble_h1(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void zero_bubble_h2(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<Slots> zero_bubble_1p(const PipelineShape& shape);
std::vector<Slots> zero_bubble_2p(const PipelineShape& shape);
void zero_bubble_v(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void dual_pipe(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
void dual_pipe_v(const PipelineShape&, std::int64_t stage, std::vector<ScheduleSlot>& slots);
std::vector<std::string> vee_lacks(const PipelineShape& shape);
std::vector<std::string> dual_pipe_lacks(const PipelineShape& shape);
std::vector<std::string> dual_pipe_v_lacks(const PipelineShape& shape);

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
