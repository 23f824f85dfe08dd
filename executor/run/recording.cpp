#include "executor/run/recording.hpp"

#include <map>
#include <string>
#include <utility>

#include "models/program/trace_names.hpp"

namespace orrery::executor {

namespace {

using models::Instruction;
using models::Program;

}  // namespace

Recording::Recording(const Program& program, std::int64_t rank, Device& device, TraceDetail detail)
    : program_{program},
      ranks_{program.classes[static_cast<std::size_t>(program.mesh.stage_of(rank))]},
      rank_{rank},
      device_{device},
      detail_{detail} {}

std::size_t Recording::add(models::Token instruction, models::Lane lane, std::uint32_t block,
                           std::int64_t layer, std::size_t operation) {
  RecordedEntry entry;
  entry.instruction = instruction;
  entry.block = block;
  entry.layer = static_cast<std::int32_t>(layer);
  entry.operation = static_cast<std::uint32_t>(operation);
  entry.start_mark = entry.end_mark = device_.mark(lane);
  entries_.push_back(entry);
  return entries_.size() - 1;
}

void Recording::resolve(Mark begin) {
  const Time zero = device_.time_of(begin);
  for (RecordedEntry& each : entries_) {
    each.start = device_.time_of(each.start_mark) - zero;
    each.end = device_.time_of(each.end_mark) - zero;
  }
}

TraceRecord Recording::operation_record(const RecordedEntry& entry) const {
  const models::Block& block = program_.blocks[entry.block];
  const models::Operation& op = block.operations[entry.operation];
  TraceRecord record;
  record.name = op.name;
  record.id = models::trace_id(rank_, entry.instruction, block, entry.layer, op);
  record.kind = std::string{models::name(op.time_class)};
  record.flops = op.flops;
  record.bytes = op.bytes;
  return record;
}

TraceRecord Recording::instruction_record(const RecordedEntry& entry) const {
  const Instruction& instruction = ranks_.instructions[entry.instruction];
  TraceRecord record;
  record.name = models::trace_title(program_, instruction);
  record.id = models::trace_id(rank_, entry.instruction);
  record.kind = std::string{models::name(instruction.op)};
  record.bytes = models::trace_bytes(program_, instruction);
  return record;
}

Trace Recording::trace() const {
  Trace trace;
  const std::string process = models::trace_process(rank_, ranks_.stage);
  std::map<std::string_view, Track> tracks;
  for (const std::string_view track : models::trace_tracks) {
    tracks[track] = trace.add_track(process, std::string{track});
  }
  for (const RecordedEntry& each : entries_) {
    const bool whole = each.block == models::no_binding;
    TraceRecord record = whole ? instruction_record(each) : operation_record(each);
    const Instruction& instruction = ranks_.instructions[each.instruction];
    record.track = tracks.at(
        whole ? models::trace_track(program_, instruction)
              : models::name(program_.blocks[each.block].operations[each.operation].queue));
    record.start = each.start;
    record.duration = each.end - each.start;
    trace.add(std::move(record));
  }
  return trace;
}

}  // namespace orrery::executor
