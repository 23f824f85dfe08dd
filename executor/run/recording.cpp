#include "executor/run/recording.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace orrery::executor {

namespace {

using models::Instruction;
using models::Opcode;
using models::Program;

bool transfers(Opcode op) {
  return op == Opcode::send || op == Opcode::receive;
}

std::string queue_of(const Program& program, const Instruction& each) {
  if (models::runs_phase(each.op)) return "compute";
  if (!transfers(each.op)) return "comm:dp";
  return program.channels[each.target].forward ? "comm:pp" : "comm:pp back";
}

/// A transfer's bytes count where it is sent.
Bytes payload(const Program& program, const Instruction& each) {
  if (models::runs_phase(each.op) || each.op == Opcode::receive) return {};
  if (each.op == Opcode::send) return program.channels[each.target].bytes;
  return program.collectives[each.target].bytes;
}

}  // namespace

std::string title(const Program& program, const Instruction& each) {
  const std::string name{models::name(each.op)};
  if (each.op == Opcode::optimizer || each.op == Opcode::compress) return name;
  if (models::runs_phase(each.op) || transfers(each.op)) {
    return fmt::format("{} chunk {} mb {}", name, each.chunk, each.micro_batch);
  }
  return program.collectives[each.target].name;
}

Recording::Recording(const Program& program, std::int64_t rank, TraceDetail detail)
    : program_{program},
      ranks_{program.classes[static_cast<std::size_t>(program.mesh.stage_of(rank))]},
      rank_{rank},
      detail_{detail} {}

std::size_t Recording::add(std::size_t instruction, Mark start, std::uint32_t block,
                           std::int64_t layer, std::size_t operation) {
  Entry entry;
  entry.instruction = static_cast<std::uint32_t>(instruction);
  entry.block = block;
  entry.layer = static_cast<std::int32_t>(layer);
  entry.operation = static_cast<std::uint32_t>(operation);
  entry.start_mark = entry.end_mark = start;
  entries_.push_back(entry);
  return entries_.size() - 1;
}

void Recording::resolve(Device& device, Mark begin) {
  const Time zero = device.time_of(begin);
  for (Entry& each : entries_) {
    each.start = device.time_of(each.start_mark) - zero;
    each.end = device.time_of(each.end_mark) - zero;
  }
}

TraceRecord Recording::operation_record(const Entry& entry) const {
  const models::Block& block = program_.blocks[entry.block];
  const models::Operation& op = block.operations[entry.operation];
  const std::string layer = entry.layer < 0 ? std::string{} : fmt::format(".{}", entry.layer);
  TraceRecord record;
  record.name = op.name;
  record.id = fmt::format("{}/{}/{}{}/{}", rank_, entry.instruction, block.name, layer, op.name);
  record.kind = std::string{models::name(op.time_class)};
  record.flops = op.flops;
  record.bytes = op.bytes;
  return record;
}

TraceRecord Recording::instruction_record(const Entry& entry) const {
  const Instruction& instruction = ranks_.instructions[entry.instruction];
  TraceRecord record;
  record.name = title(program_, instruction);
  record.id = fmt::format("{}/{}", rank_, entry.instruction);
  record.kind = std::string{models::name(instruction.op)};
  record.bytes = payload(program_, instruction);
  return record;
}

Trace Recording::trace() const {
  Trace trace;
  const std::string process = fmt::format("rank {} (stage {})", rank_, ranks_.stage);
  std::map<std::string, Track> tracks;
  for (const char* queue :
       {"host", "compute", "comm:tp", "comm:dp", "comm:pp", "comm:pp back", "copy"}) {
    tracks[queue] = trace.add_track(process, queue);
  }
  for (const Entry& each : entries_) {
    const bool whole = each.block == models::no_binding;
    TraceRecord record = whole ? instruction_record(each) : operation_record(each);
    const Instruction& instruction = ranks_.instructions[each.instruction];
    record.track =
        tracks.at(whole ? queue_of(program_, instruction)
                        : std::string{models::name(
                              program_.blocks[each.block].operations[each.operation].queue)});
    record.start = each.start;
    record.duration = each.end - each.start;
    trace.add(std::move(record));
  }
  return trace;
}

}  // namespace orrery::executor
