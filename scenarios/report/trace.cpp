#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "hardware/gpu/gpu_power.hpp"
#include "models/data/lane_names.hpp"
#include "models/evaluation/replay.hpp"
#include "models/program/memory_course.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/trace_names.hpp"
#include "models/program/walk.hpp"
#include "scenarios/report/trace_file.hpp"
#include "sim/input/text.hpp"
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

/// The sum of rates that begin and end, as a counter.
class RateSum {
 public:
  void add(Time begin, Time end, double rate) {
    if (rate == 0 || end <= begin) return;
    steps_[begin] += rate;
    steps_[end] -= rate;
  }
  void count(std::size_t process, std::string_view counter, std::string_view unit, double base,
             std::vector<TraceCount>& counts) const {
    double value = base;
    counts.push_back({process, counter, unit, Time{}, base});
    for (const auto& [at, step] : steps_) {
      value += step;
      const double shown = std::max(value, 0.0);
      if (counts.back().at == at) {
        counts.back().value = shown;
      } else {
        counts.push_back({process, counter, unit, at, shown});
      }
    }
  }

 private:
  std::map<Time, double> steps_;
};

/// What one phase does besides taking time: of its kernels and its collectives.
struct PhaseUse {
  Time math{}, memory_bound{}, nic{};
};

bool is_kernel(const Operation& op) {
  return op.queue == Lane::compute && op.kind != models::OpKind::collective &&
         op.kind != models::OpKind::copy;
}

bool is_math(const Operation& op) {
  return op.time_class == models::TimeClass::gemm || op.time_class == models::TimeClass::attention;
}

std::vector<PhaseUse> uses_of_phases(const models::PricedProgram& priced) {
  std::vector<PhaseUse> uses;
  for (const models::Phase& phase : priced.program->phases) {
    PhaseUse use;
    for (const models::Invocation& run : phase.invocations) {
      const models::Block& block = priced.program->blocks[run.block];
      for (std::size_t i = 0; i < block.operations.size(); ++i) {
        const models::PricedOperation& price = priced.blocks[run.block][i];
        use.nic += price.links.nic * run.count;
        if (!is_kernel(block.operations[i])) continue;
        (is_math(block.operations[i]) ? use.math : use.memory_bound) += price.duration * run.count;
      }
    }
    uses.push_back(use);
  }
  return uses;
}

/// Where an instruction is in the trace: its first and its last record on its own queue.
struct TracedSpan {
  Track track{};
  Time first{}, last_start{}, end{};
  bool known = false;

  void add(Track on, Time start, Time until) {
    if (!known) first = start;
    track = on;
    last_start = std::max(last_start, start);
    end = std::max(end, until);
    known = true;
  }
  /// Points inside its first and its last record, by which viewers find them.
  Time inside_first() const { return first; }
  Time inside_last() const { return last_start + (end - last_start) * 0.5; }
};

/// The k-th send and the k-th receive of a channel.
struct ChannelEnds {
  std::vector<TracedSpan> sends, receives;
};

/// What is collected for the marks of all classes while they are recorded.
struct Marking {
  const hardware::Cluster& cluster;
  const std::vector<models::StageMemory>& memory;
  TraceMarks& marks;
  std::vector<PhaseUse> uses;
  std::vector<ChannelEnds> channels;
};

/// Records the first rank of one class. A transfer lasts as long as it occupies its queue, even if
/// the stack overlaps part of it with dependent work.
class ClassTrace {
 public:
  ClassTrace(const models::Prediction& prediction, std::uint32_t rank_class, TraceDetail detail,
             Trace& trace, Marking* marking = nullptr)
      : priced_{prediction.priced},
        program_{*prediction.program},
        detail_{detail},
        trace_{trace},
        marking_{marking},
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
    if (marking_) begin_marks();
    models::replay(priced_, times, rank_class_, observer);
    if (priced_.bound.rank_class == rank_class_) add_bound(times);
    if (marking_) end_marks();
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

  void begin_marks() {
    spans_.resize(program_.classes[rank_class_].instructions.size());
    memory_ = models::memory_course(program_, rank_class_);
    around_ = models::around_course(memory_, marking_->memory.at(rank_class_).total);
  }

  /// Adds a record with its communicator.
  void add_record(TraceRecord record, const TraceGroup& group = {}) {
    trace_.add(std::move(record));
    if (!marking_) return;
    marking_->marks.groups.resize(trace_.records().size());
    marking_->marks.groups.back() = group;
  }

  TraceGroup group_of(std::uint16_t communicator, std::string_view operation,
                      hardware::DType format) const {
    const models::Communicator& group = program_.communicators[communicator];
    const std::int64_t all = program_.mesh.degree(group.axes);
    const std::int64_t pipe = program_.mesh.degree(models::MeshAxis::pipeline);
    const bool some = !group.stages.empty();
    return {.name = group.name,
            .operation = operation,
            .format = hardware::name(format),
            .ranks = some ? all / pipe * static_cast<std::int64_t>(group.stages.size()) : all};
  }

  TraceGroup group_of(const Instruction& instruction) const {
    const auto none = [](auto...) { return TraceGroup{}; };
    const auto transfer = [&](auto, const Instruction& of) {
      const models::Channel& channel = program_.channels[of.target];
      TraceGroup group = group_of(channel.communicator, models::name(of.op), hardware::DType::bf16);
      group.ranks = 2;
      group.format = {};
      return group;
    };
    const auto joint = [&](auto, const Instruction& of) {
      const models::JointCollective& own = program_.collectives[of.target];
      return group_of(own.communicator, models::name(own.kind), own.dtype);
    };
    return visit(0, instruction, models::Cases{none, transfer, transfer, joint});
  }

  /// Rates, memory and arrows of one instruction.
  void mark(const InstructionRecord& each) {
    const Instruction& instruction = *each.instruction;
    TracedSpan& span = spans_[each.index];
    if (!span.known) {
      span.add(tracks_.at(models::trace_track(program_, instruction)), each.start - each.lead,
               each.end);
    }
    const auto share = [&](Time nic) {
      return each.end > each.start ? ratio(nic, each.end - each.start) : 0;
    };
    const auto phase = [&](auto, const Instruction& of) {
      if (of.awaits != models::no_token) arrow(of.awaits, each.index);
      if (detail_ == TraceDetail::operations) return;
      const PhaseUse& use = marking_->uses[of.target];
      nic_.add(each.start, each.end, share(use.nic));
      draw(each.start, each.end, share(use.math), share(use.memory_bound));
    };
    const auto send = [&](auto, const Instruction& of) {
      marking_->channels[of.target].sends.push_back(span);
    };
    const auto receive = [&](auto, const Instruction& of) {
      marking_->channels[of.target].receives.push_back(span);
      if (priced_.channel_links.empty()) return;
      nic_.add(each.start, each.end, share(priced_.channel_links[of.target].nic));
    };
    const auto joint = [&](auto, const Instruction& of) {
      if (of.input != models::no_token) arrow(of.input, each.index);
      nic_.add(each.start - each.lead, each.end,
               each.end > each.start - each.lead ? ratio(priced_.collectives[of.target].links.nic,
                                                         each.end - each.start + each.lead)
                                                 : 0);
    };
    visit(0, instruction, models::Cases{phase, send, receive, joint});
    count_memory(each);
  }

  void arrow(models::Token from, std::size_t to) {
    const TracedSpan &begin = spans_[from], &end = spans_[to];
    if (!begin.known || !end.known) return;
    const bool of_joint = is_joint(program_.classes[rank_class_].instructions[from]);
    const Instruction& joint = program_.classes[rank_class_]
                                   .instructions[of_joint ? from : static_cast<models::Token>(to)];
    marking_->marks.arrows.push_back({.name = is_joint(joint)
                                                  ? program_.collectives[joint.target].name
                                                  : std::string{models::name(joint.op)},
                                      .from_track = begin.track,
                                      .to_track = end.track,
                                      .from = begin.inside_last(),
                                      // A collective may be on the wire before its input is whole.
                                      .to = std::max(begin.inside_last(), end.inside_first())});
  }

  void draw(Time begin, Time end, double math, double memory_bound) {
    const hardware::PowerDraw draw = hardware::power_draw(marking_->cluster.gpu());
    const double most = std::max(1.0, math + memory_bound);
    power_.add(begin, end,
               ((draw.math - draw.waiting).count() * math +
                (draw.memory_bound - draw.waiting).count() * memory_bound) /
                   most);
  }

  void count_memory(const InstructionRecord& each) {
    const auto count = [&](Time at, Bytes bytes) {
      const auto value = static_cast<double>((bytes + around_).count());
      memory_at_ = std::max(memory_at_, at);
      marking_->marks.counts.push_back({process_index(), "memory", "bytes", memory_at_, value});
    };
    if (freed_ && freed_->first < each.start) count(freed_->first, freed_->second);
    count(each.start, memory_[each.index].during);
    freed_ = std::pair{each.end, memory_[each.index].after};
  }

  std::size_t process_index() const { return trace_.tracks()[index(tracks_.at("host"))].process; }

  void end_marks() {
    std::vector<TraceCount>& counts = marking_->marks.counts;
    nic_.count(process_index(), "NIC", "share of its rate", 0, counts);
    const double waiting = hardware::power_draw(marking_->cluster.gpu()).waiting.count();
    power_.count(process_index(), "GPU power", "W", waiting, counts);
    marking_->marks.groups.resize(trace_.records().size());
  }

  void add(const InstructionRecord& each) {
    const Instruction& instruction = *each.instruction;
    const std::string id = models::trace_id(rank_, each.index);
    const bool by_operation = detail_ == TraceDetail::operations && models::runs_phase(instruction);
    if (!by_operation) {
      add_record({.track = tracks_.at(models::trace_track(program_, instruction)),
                  .start = each.start - each.lead,
                  .duration = each.end - each.start + each.lead,
                  .name = models::trace_title(program_, instruction),
                  .id = id,
                  .kind = std::string{models::name(instruction.op)},
                  .bytes = models::trace_bytes(program_, instruction)},
                 marking_ ? group_of(instruction) : TraceGroup{});
      const Time host{each.before[models::state_host].value};
      trace_.add({.track = tracks_.at("host"),
                  .start = host,
                  .duration = launch_end(each) - host,
                  .name = "launch " + models::trace_title(program_, instruction),
                  .id = id + "/host",
                  .kind = "host"});
    }
    if (marking_) mark(each);
  }

  /// Rates of one operation, and its place in its instruction.
  void mark(const OperationRecord& each, const Operation& op,
            const models::PricedOperation& price) {
    const Time begin = each.start - price.lead, end = begin + price.occupied();
    if (end > begin) nic_.add(begin, end, ratio(price.links.nic, end - begin));
    if (is_kernel(op)) draw(begin, end, is_math(op) ? 1 : 0, is_math(op) ? 0 : 1);
    if (op.queue == Lane::compute) spans_[each.index].add(tracks_.at("compute"), begin, end);
  }

  void add(const OperationRecord& each) {
    const models::Block& block = program_.blocks[each.block];
    const Operation& op = block.operations[each.operation];
    const std::string id = models::trace_id(rank_, each.index, block, each.layer, op);
    const models::PricedOperation& price = priced_.blocks[each.block][each.operation];
    if (marking_) mark(each, op, price);
    const bool joined = marking_ && op.kind == models::OpKind::collective;
    add_record({.track = tracks_.at(models::name(op.queue)),
                .start = each.start - price.lead,
                .duration = price.occupied(),
                .name = op.name,
                .id = id,
                .kind = std::string{models::name(op.time_class)},
                .flops = op.flops,
                .bytes = op.bytes},
               joined ? group_of(op.communicator(), models::name(op.collective()), op.dtype)
                      : TraceGroup{});
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
  Marking* marking_;
  std::uint32_t rank_class_;
  std::int64_t rank_;
  std::string process_;
  std::map<std::string_view, Track> tracks_;
  std::vector<TracedSpan> spans_;  // by instruction
  std::vector<models::MemoryAt> memory_;
  Bytes around_{};
  Time memory_at_{};
  std::optional<std::pair<Time, Bytes>> freed_;  // by the instruction before, at its end
  RateSum nic_, power_;
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
               .id = models::trace_input_id(thread),
               .kind = "data"});
  };
  for (const models::DataStage& each : data.stages) {
    record(each.name, each.name + " of a later batch", Time{}, each.time);
  }
  if (data.wait() > Time{}) record("wait", "the step waits", data.compute, data.wait());
}

/// An arrow for each message, from the send on one rank to the receive on another.
void add_messages(const std::vector<ChannelEnds>& channels, TraceMarks& marks) {
  for (const ChannelEnds& each : channels) {
    const std::size_t both = std::min(each.sends.size(), each.receives.size());
    for (std::size_t k = 0; k < both; ++k) {
      const TracedSpan &send = each.sends[k], &receive = each.receives[k];
      // A receive may be recorded from before the send that it waits for; its end is not.
      marks.arrows.push_back({.name = "message",
                              .from_track = send.track,
                              .to_track = receive.track,
                              .from = send.inside_first(),
                              .to = std::max(receive.inside_last(), send.inside_first())});
    }
  }
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

MarkedTrace marked_trace_of(const models::Question& question, const models::Prediction& prediction,
                            TraceDetail detail) {
  MarkedTrace made;
  Marking marking{.cluster = question.cluster,
                  .memory = prediction.memory,
                  .marks = made.marks,
                  .uses = uses_of_phases(prediction.priced),
                  .channels = std::vector<ChannelEnds>(prediction.program->channels.size())};
  for (std::uint32_t c = 0; c < prediction.program->classes.size(); ++c) {
    ClassTrace{prediction, c, detail, made.trace, &marking}.record(prediction.times);
  }
  add_messages(marking.channels, made.marks);
  if (prediction.data) add_data_lane(*prediction.data, made.trace);
  made.trace.note("peak_memory_bytes", prediction.memory.at(prediction.fullest).total.count());
  return made;
}

namespace {

/// Writes a file, packed if its name ends in .gz.
std::size_t write_packed(
    const std::string& path,
    const std::function<std::size_t(const std::function<void(std::string_view)>&)>& write) {
  DurableFile file{path};
  const auto put = [&](std::string_view piece) { file.write(piece); };
  std::size_t events = 0;
  if (path.ends_with(".gz")) {
    GzipWriter packed{put};
    events = write([&](std::string_view piece) { packed.write(piece); });
    packed.finish();
  } else {
    events = write(put);
  }
  file.commit();
  return events;
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path) {
  write_packed(path, [&](const auto& put) { return write_chrome(trace, put); });
}

WrittenTrace write_trace_file(const MarkedTrace& marked, const std::string& path) {
  return {path, write_packed(path, [&](const auto& put) {
            return write_chrome(marked.trace, marked.marks, put);
          })};
}

// ---- The form of PyTorch's profiler.

namespace {

constexpr int host_process = 1000;  // as a process id; devices are numbered from 0

/// Stream numbers, of the queue in a trace.
int stream_of(std::string_view queue) {
  const auto found = std::ranges::find(models::trace_tracks, queue);
  return queue == "compute" ? 7 : 16 + static_cast<int>(found - models::trace_tracks.begin());
}

std::string_view kineto_format(std::string_view format) {
  if (format == "fp32") return "Float";
  if (format == "fp16") return "Half";
  if (format == "fp64") return "Double";
  return format == "bf16" ? "BFloat16" : "Byte";
}

std::int64_t element_size(std::string_view format) {
  if (format == "fp32") return 4;
  if (format == "fp64") return 8;
  return format == "bf16" || format == "fp16" ? 2 : 1;
}

/// NCCL's kernel and the profiler's name of a collective.
std::pair<std::string_view, std::string_view> nccl_names(std::string_view operation) {
  if (operation == "all_reduce") return {"ncclDevKernel_AllReduce", "allreduce"};
  if (operation == "all_gather") return {"ncclDevKernel_AllGather", "_allgather_base"};
  if (operation == "reduce_scatter") return {"ncclDevKernel_ReduceScatter", "_reduce_scatter_base"};
  if (operation == "all_to_all") return {"ncclDevKernel_SendRecv", "all_to_allv"};
  if (operation == "broadcast") return {"ncclDevKernel_Broadcast", "broadcast"};
  if (operation == "send") return {"ncclDevKernel_SendRecv", "send"};
  if (operation == "receive") return {"ncclDevKernel_SendRecv", "recv"};
  return {"ncclDevKernel_Generic", operation};
}

/// The events of one process of a trace, which is one rank.
class KinetoWriter {
 public:
  KinetoWriter(const MarkedTrace& marked, std::size_t process, std::int64_t rank,
               const models::Question& question, Time step)
      : trace_{marked.trace},
        groups_{marked.marks.groups},
        process_{process},
        rank_{rank},
        question_{question},
        step_{step} {}

  std::size_t write(const std::function<void(std::string_view)>& put) {
    const hardware::Gpu& gpu = question_.cluster.gpu();
    const auto gpus = question_.cluster.node.gpus;
    device_ = static_cast<int>(rank_ % gpus);
    const Json properties{
        {"id", device_}, {"name", gpu.name}, {"totalGlobalMem", gpu.memory.count()}};
    // Holistic Trace Analysis finds the rank by a blank after its colon.
    text_ = fmt::format(
        "{{\"schemaVersion\": 1,\n\"deviceProperties\": [{}],\n\"distributedInfo\": "
        "{{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n\"traceName\": "
        "{},\n\"predicted_by\": \"orrery\",\n\"traceEvents\": [\n",
        properties.dump(), rank_, question_.plan.gpus(),
        Json(question_.model.name).dump(-1, ' ', false, Json::error_handler_t::replace));
    add({{"ph", "X"},
         {"cat", "user_annotation"},
         {"name", "ProfilerStep#1"},
         {"pid", host_process},
         {"tid", host_process},
         {"ts", 0.0},
         {"dur", seconds(step_) * 1e6},
         {"args", Json::object()}});
    for (std::size_t i = 0; i < trace_.records().size(); ++i) {
      const Trace::Queue& queue = trace_.tracks()[index(trace_.records()[i].track)];
      if (queue.process == process_ && queue.name != "host") add_work(i, queue.name);
      if (text_.size() < (1 << 16)) continue;
      put(text_);
      text_.clear();
    }
    text_ += "\n]}\n";
    put(text_);
    return events_;
  }

 private:
  void add(const Json& event) {
    text_ += events_++ == 0 ? "" : ",\n";
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static double microseconds(Time time) { return seconds(time) * 1e6; }

  void add_work(std::size_t i, const std::string& queue) {
    const TraceRecord& work = trace_.records()[i];
    const std::int64_t correlation = ++correlations_;
    const bool copy = queue == "copy";
    const TraceGroup group = i < groups_.size() ? groups_[i] : TraceGroup{};
    Json arguments{{"External id", correlation}, {"device", device_},          {"context", 1},
                   {"stream", stream_of(queue)}, {"correlation", correlation}, {"id", work.id},
                   {"class", work.kind}};
    // Analysers know a kernel's class by its name.
    std::string name = fmt::format("{}_kernel({})", work.kind, work.name);
    if (copy) name = "Memcpy " + work.name;
    if (copy && work.bytes.count() > 0) arguments["bytes"] = work.bytes.count();
    if (group.ranks > 0) name = add_group(work, group, arguments);
    add_launch(i, correlation, copy);
    add({{"ph", "X"},
         {"cat", copy ? "gpu_memcpy" : "kernel"},
         {"name", name},
         {"pid", device_},
         {"tid", stream_of(queue)},
         {"ts", microseconds(work.start)},
         {"dur", microseconds(work.duration)},
         {"args", std::move(arguments)}});
  }

  /// The name of a collective's kernel, and the members by which analysers know it.
  static std::string add_group(const TraceRecord& work, const TraceGroup& group, Json& arguments) {
    const auto [kernel, profiler] = nccl_names(group.operation);
    const std::int64_t elements = work.bytes.count() / element_size(group.format);
    const bool gathers = group.operation == "all_gather";
    const bool scatters = group.operation == "reduce_scatter";
    arguments["Collective name"] = profiler;
    arguments["In msg nelems"] = gathers ? elements / group.ranks : elements;
    arguments["Out msg nelems"] = scatters ? elements / group.ranks : elements;
    arguments["Group size"] = group.ranks;
    arguments["dtype"] = kineto_format(group.format);
    arguments["Process Group Name"] = group.name;
    return fmt::format("{}({})", kernel, work.name);
  }

  /// The host's record follows that of the work that it launches.
  void add_launch(std::size_t i, std::int64_t correlation, bool copy) {
    const TraceRecord& work = trace_.records()[i];
    Time start = work.start, duration{};
    if (i + 1 < trace_.records().size() && trace_.records()[i + 1].id == work.id + "/host") {
      start = trace_.records()[i + 1].start;
      duration = trace_.records()[i + 1].duration;
    }
    add({{"ph", "X"},
         {"cat", "cuda_runtime"},
         {"name", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel"},
         {"pid", host_process},
         {"tid", host_process},
         {"ts", microseconds(start)},
         {"dur", microseconds(duration)},
         {"args", {{"External id", correlation}, {"cbid", 211}, {"correlation", correlation}}}});
    const auto flow = [&](const char* phase, int pid, int tid, Time at) {
      Json event{{"ph", phase},   {"id", correlation},      {"pid", pid},
                 {"tid", tid},    {"ts", microseconds(at)}, {"cat", "ac2g"},
                 {"name", "ac2g"}};
      if (*phase == 'f') event["bp"] = "e";
      add(event);
    };
    const Trace::Queue& queue = trace_.tracks()[index(work.track)];
    flow("s", host_process, host_process, start);
    flow("f", device_, stream_of(queue.name), work.start);
  }

  const Trace& trace_;
  const std::vector<TraceGroup>& groups_;
  std::size_t process_;
  std::int64_t rank_;
  const models::Question& question_;
  Time step_;
  int device_ = 0;
  std::string text_;
  std::size_t events_ = 0;
  std::int64_t correlations_ = 0;
};

bool names_file(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".json.gz");
}

}  // namespace

std::vector<WrittenTrace> write_kineto(const MarkedTrace& marked, const models::Question& question,
                                       const models::Prediction& prediction,
                                       const std::string& path) {
  const std::size_t ranks = marked.trace.processes().size();
  if (names_file(path) && ranks > 1) {
    throw InputError{"--trace", fmt::format("expected a folder, because a kineto file holds one "
                                            "rank and this step has {}, one for each stage; "
                                            "found '{}'",
                                            ranks, printable(path))};
  }
  if (!names_file(path)) make_folder(path);
  std::vector<WrittenTrace> written;
  for (std::size_t p = 0; p < ranks; ++p) {
    const std::int64_t rank =
        prediction.program->mesh.first_rank(prediction.program->classes[p].stage);
    const std::string file =
        names_file(path) ? path : fmt::format("{}/rank-{}.json.gz", path, rank);
    KinetoWriter writer{marked, p, rank, question, prediction.step};
    written.push_back(
        {file, write_packed(file, [&](const auto& put) { return writer.write(put); })});
  }
  return written;
}

}  // namespace orrery::scenarios
