#include <fmt/format.h>

#include <map>

#include "models/evaluation/replay.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/trace_names.hpp"
#include "models/program/walk.hpp"
#include "scenarios/result.hpp"
#include "sim/output/durable_file.hpp"
#include "sim/output/gzip.hpp"
#include "sim/trace/chrome.hpp"

namespace orrery::scenarios {

namespace {

using models::Instruction;
using models::InstructionRecord;
using models::Lane;
using models::Opcode;
using models::Operation;
using models::OperationRecord;

/// Records the first rank of one class. A transfer lasts as long as it occupies its queue, even if
/// the stack overlaps part of it with dependent work.
class ClassTrace {
 public:
  ClassTrace(const models::Prediction& prediction, std::uint32_t rank_class, TraceDetail detail,
             Trace& trace)
      : priced_{prediction.priced},
        program_{*prediction.program},
        detail_{detail},
        trace_{trace},
        rank_class_{rank_class},
        rank_{program_.mesh.first_rank(program_.classes[rank_class].stage)},
        process_{models::trace_process(rank_, program_.classes[rank_class].stage)} {
    for (const std::string_view track : models::trace_tracks) {
      tracks_[track] = trace_.add_track(process_, std::string{track});
    }
  }

  void record(const models::StepTimes& times) {
    add_step_launch();
    add_carried();
    models::ReplayObserver observer;
    observer.instruction = [this](const InstructionRecord& each) { add(each); };
    if (detail_ == TraceDetail::operations) {
      observer.operation = [this](const OperationRecord& each) { add(each); };
    }
    models::replay(priced_, times, rank_class_, observer);
    if (priced_.bound.rank_class == rank_class_) add_bound(times);
  }

 private:
  /// The parameter gather that the previous step left on the data-parallel queue.
  void add_carried() {
    const Time carried = priced_.carried_by(rank_class_);
    if (carried == Time{}) return;
    trace_.add({.track = tracks_.at("comm:dp"),
                .start = Time{},
                .duration = carried,
                .name = "gather of the step before",
                .id = fmt::format("{}/carried", rank_),
                .kind = std::string{models::name(Opcode::gather)}});
  }

  /// The time by which the fullest NIC extends the step beyond its schedule.
  void add_bound(const models::StepTimes& times) {
    const Time end = times.scheduled();
    if (end == times.step) return;
    const models::TimeClass part = priced_.bound.part;
    const char* queue = part == models::TimeClass::tp   ? "comm:tp"
                        : part == models::TimeClass::pp ? "comm:pp"
                                                        : "comm:dp";
    trace_.add({.track = tracks_.at(queue),
                .start = end,
                .duration = times.step - end,
                .name = "the NIC, full by other queues",
                .id = fmt::format("{}/bound", rank_),
                .kind = std::string{models::name(part)}});
  }

  /// The host's work before the first instruction.
  void add_step_launch() {
    if (priced_.step_launch == Time{}) return;
    trace_.add({.track = tracks_.at("host"),
                .start = Time{},
                .duration = priced_.step_launch,
                .name = "begin step",
                .id = fmt::format("{}/step/host", rank_),
                .kind = "host"});
  }

  void add(const InstructionRecord& each) {
    const Instruction& instruction = *each.instruction;
    const std::string id = models::trace_id(rank_, each.index);
    const bool by_operation = detail_ == TraceDetail::operations && models::runs_phase(instruction);
    if (!by_operation) {
      trace_.add({.track = tracks_.at(models::trace_track(program_, instruction)),
                  .start = each.start - each.lead,
                  .duration = each.end - each.start + each.lead,
                  .name = models::trace_title(program_, instruction),
                  .id = id,
                  .kind = std::string{models::name(instruction.op)},
                  .bytes = models::trace_bytes(program_, instruction)});
      const Time host{each.before[models::state_host].value};
      trace_.add({.track = tracks_.at("host"),
                  .start = host,
                  .duration = launch_end(each) - host,
                  .name = "launch " + models::trace_title(program_, instruction),
                  .id = id + "/host",
                  .kind = "host"});
    }
  }

  void add(const OperationRecord& each) {
    const models::Block& block = program_.blocks[each.block];
    const Operation& op = block.operations[each.operation];
    const std::string id = models::trace_id(rank_, each.index, block, each.layer, op);
    const models::PricedOperation& price = priced_.blocks[each.block][each.operation];
    trace_.add({.track = tracks_.at(models::name(op.queue)),
                .start = each.start - price.lead,
                .duration = price.occupied(),
                .name = op.name,
                .id = id,
                .kind = std::string{models::name(op.time_class)},
                .flops = op.flops,
                .bytes = op.bytes});
    if (price.launch.count() == 0) return;
    trace_.add({.track = tracks_.at("host"),
                .start = each.launched - price.launch,
                .duration = price.launch,
                .name = "launch " + op.name,
                .id = id + "/host",
                .kind = "host"});
  }

  /// The end of an instruction's launch, without a wait that may follow it.
  Time launch_end(const InstructionRecord& each) const {
    const Time before{each.before[models::state_host].value};
    const auto phase = [&](auto...) { return Time{each.after[models::state_host].value}; };
    const auto transfer = [&](auto...) { return before + priced_.transfer_launch; };
    const auto joint = [&](auto, const Instruction& of) {
      return before + priced_.collectives[of.target].launch;
    };
    return visit(0, *each.instruction, models::Cases{phase, transfer, transfer, joint});
  }

  const models::PricedProgram& priced_;
  const models::Program& program_;
  TraceDetail detail_;
  Trace& trace_;
  std::uint32_t rank_class_;
  std::int64_t rank_;
  std::string process_;
  std::map<std::string_view, Track> tracks_;
};

/// The lane of the step's input: every stage works on the batch of a later step, and what the step
/// waits comes after its own work.
void add_data_lane(const models::DataAnswer& data, Trace& trace) {
  const auto record = [&](const std::string& thread, const std::string& name, Time start,
                          Time duration) {
    trace.add({.track = trace.add_track("input", thread),
               .start = start,
               .duration = duration,
               .name = name,
               .id = "data/" + thread,
               .kind = "data"});
  };
  for (const models::DataStage& each : data.stages) {
    record(each.name, each.name + " of a later batch", Time{}, each.time);
  }
  if (data.wait() > Time{}) record("wait", "the step waits", data.compute, data.wait());
}

}  // namespace

Trace trace_of(const models::Prediction& prediction, TraceDetail detail) {
  Trace trace;
  for (std::uint32_t c = 0; c < prediction.program->classes.size(); ++c) {
    ClassTrace{prediction, c, detail, trace}.record(prediction.times);
  }
  if (prediction.data) add_data_lane(*prediction.data, trace);
  trace.note("peak_memory_bytes", prediction.memory.at(prediction.fullest).total.count());
  return trace;
}

void write_trace(const Trace& trace, const std::string& path) {
  DurableFile file{path};
  const auto put = [&](std::string_view piece) { file.write(piece); };
  if (path.ends_with(".gz")) {
    GzipWriter packed{put};
    write_chrome(trace, [&](std::string_view piece) { packed.write(piece); });
    packed.finish();
  } else {
    write_chrome(trace, put);
  }
  file.commit();
}

}  // namespace orrery::scenarios
