#pragma once
// What a step's instructions and operations were and when they ran, as a trace in the simulator's
// words: the same tracks, names, ids and classes, so that the two are joined by id.

#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/run/settings.hpp"
#include "models/program/program.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

class Recording {
 public:
  Recording(const models::Program& program, std::int64_t rank, TraceDetail detail);

  /// Of the steps from now on.
  void set(TraceDetail detail) { detail_ = detail; }
  bool operations() const { return detail_ == TraceDetail::operations; }
  bool instructions() const { return detail_ != TraceDetail::none; }

  void clear() { entries_.clear(); }
  /// An operation of a block, or with no block the whole instruction. Returns its number.
  std::size_t add(std::size_t instruction, Mark start, std::uint32_t block = models::no_binding,
                  std::int64_t layer = -1, std::size_t operation = 0);
  void end(std::size_t number, Mark end) { entries_[number].end_mark = end; }
  /// Reads the times, counted from `begin`, while the device still knows its marks.
  void resolve(Device& device, Mark begin);
  /// Puts the trace together: words are made only when asked for.
  Trace trace() const;

 private:
  struct RecordedEntry {
    std::uint32_t instruction = 0, block = models::no_binding, operation = 0;
    std::int32_t layer = -1;
    Mark start_mark, end_mark;
    Time start{}, end{};
  };
  TraceRecord operation_record(const RecordedEntry& entry) const;
  TraceRecord instruction_record(const RecordedEntry& entry) const;

  const models::Program& program_;
  const models::RankClass& ranks_;
  std::int64_t rank_;
  TraceDetail detail_;
  std::vector<RecordedEntry> entries_;
};

}  // namespace orrery::executor
