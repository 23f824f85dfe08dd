#pragma once
// Records when the instructions and operations of a step ran, and makes a trace with the
// simulator's tracks, names, ids and classes, so that measured and predicted are joined by id.

#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/run/settings.hpp"
#include "models/program/program.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

/// The entry number of something that is not recorded.
inline constexpr std::size_t not_recorded = static_cast<std::size_t>(-1);

/// The entries of one rank's last step.
class Recording {
 public:
  Recording(const models::Program& program, std::int64_t rank, Device& device, TraceDetail detail);

  /// Sets the detail from the next step on.
  void set(TraceDetail detail) { detail_ = detail; }
  bool operations() const { return detail_ == TraceDetail::operations; }
  bool instructions() const { return detail_ != TraceDetail::none; }

  void clear() { entries_.clear(); }
  /// Begin an entry on a lane and return its number, or not_recorded where the detail leaves it
  /// out: a whole instruction; one operation of a block; an operation or, with less detail, its
  /// instruction.
  std::size_t begin(models::Token instruction, models::Lane lane) {
    return instructions() ? add(instruction, lane) : not_recorded;
  }
  std::size_t begin(models::Token instruction, models::Lane lane, std::uint32_t block,
                    std::int64_t layer, std::size_t operation) {
    return operations() ? add(instruction, lane, block, layer, operation) : not_recorded;
  }
  std::size_t begin_either(models::Token instruction, models::Lane lane, std::uint32_t block,
                           std::size_t operation) {
    return operations() ? add(instruction, lane, block, -1, operation) : begin(instruction, lane);
  }
  void end(std::size_t number, models::Lane lane) {
    if (number != not_recorded) end(number, device_.mark(lane));
  }
  void end(std::size_t number, Mark end) {
    if (number != not_recorded) entries_[number].end_mark = end;
  }
  /// Reads the times, relative to `begin`. Call before Device::forget_marks.
  void resolve(Mark begin);
  /// Assembles the trace; names are formatted only here, not while the step runs.
  Trace trace() const;

 private:
  struct RecordedEntry {
    std::uint32_t instruction = 0, block = models::no_binding, operation = 0;
    std::int32_t layer = -1;
    Mark start_mark, end_mark;
    Time start{}, end{};
  };
  std::size_t add(models::Token instruction, models::Lane lane,
                  std::uint32_t block = models::no_binding, std::int64_t layer = -1,
                  std::size_t operation = 0);
  TraceRecord operation_record(const RecordedEntry& entry) const;
  TraceRecord instruction_record(const RecordedEntry& entry) const;

  const models::Program& program_;
  const models::RankClass& ranks_;
  std::int64_t rank_;
  Device& device_;
  TraceDetail detail_;
  std::vector<RecordedEntry> entries_;
};

}  // namespace orrery::executor
