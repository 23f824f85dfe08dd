#include "executor/run/runner.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <utility>

#include "executor/errors.hpp"
#include "executor/layout/sequences.hpp"
#include "executor/run/blocks/blocks.hpp"
#include "executor/run/pipe.hpp"
#include "executor/run/refusals.hpp"
#include "executor/run/send_depth.hpp"
#include "executor/run/weights/optimizer.hpp"
#include "models/program/trace_names.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Instruction;
using models::Program;
using models::Token;

const Program& accepted(const Program& program, const models::Software& software,
                        const Device& device, const Fabric& fabric) {
  if (fabric.ranks() != program.mesh.ranks()) {
    throw RunFailure{Exit::invalid_program,
                     fmt::format("the program needs {} ranks, this run has {}",
                                 program.mesh.ranks(), fabric.ranks())};
  }
  const std::string why = refusal(program, software, device);
  if (!why.empty()) throw RunFailure{Exit::invalid_program, "cannot execute " + why};
  models::check(program);
  return program;
}

/// Bytes of the partial sums that are packed and added up before the norm.
std::int64_t packed_sums(const Layout& layout) {
  std::int64_t elements = 0;
  for (const Span& each : layout.partial_sums()) elements += each.count;
  return elements * 8;
}

const models::RankClass& class_of(const Program& program, std::int64_t rank) {
  return program.classes[static_cast<std::size_t>(program.mesh.stage_of(rank))];
}

/// Highest resident size of the process; 0 where the system does not say.
/// Source  proc(5), VmHWM of /proc/self/status, in KiB
Bytes resident_size() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return Bytes{kib * 1024};
  }
  return {};
}

}  // namespace

/// The parts of a run, declared in the order of their dependencies.
struct Runner::Parts {
  Parts(const Program& program, Device& on, Fabric& between, RunSettings given);

  struct Dispatch;
  StepOutcome step(std::int64_t index);
  void share_masters();

  Device& device;
  Fabric& fabric;
  RunSettings settings;
  Layout layout;
  MemoryPlan plan;
  TokenMap tokens;
  std::vector<Group> groups;
  StepPosition at;
  HeldMemory memory;
  Recording recording;
  FabricCalls calls;
  RankContext rank;
  Weights weights;
  Reducer reducer;
  Samples samples;
  Blocks blocks;
  Optimizer optimizer;
  Pipe pipe;
};

Runner::Parts::Parts(const Program& program, Device& on, Fabric& between, RunSettings given)
    : device{on},
      fabric{between},
      settings{std::move(given)},
      layout{program, fabric.rank()},
      plan{program, program.mesh.stage_of(fabric.rank()), packed_sums(layout), send_depth(program)},
      tokens{token_map(program, fabric.rank())},
      groups{make_groups(program, fabric)},
      memory{class_of(program, fabric.rank()), plan, device, settings.freed},
      recording{program, fabric.rank(), device, recordable(settings.trace, program.graphs)},
      calls{device, fabric, groups, settings.arithmetic, recording, at},
      rank{program,  fabric.rank(),  class_of(program, fabric.rank()),
           layout,   plan,           tokens,
           settings, memory.arena(), device,
           calls,    recording},
      weights{rank, memory},
      reducer{rank, weights, memory},
      samples{rank, memory},
      blocks{rank, weights, reducer, samples, memory},
      optimizer{rank, weights, reducer},
      pipe{rank} {
  ensure(settings.arithmetic == Arithmetic::real || width_of(program.formats.storage) == 8,
         "ring arithmetic needs precision fp64");
  device.finish();  // pending zeroing must not come after the writes that follow
  weights.draw();
  share_masters();
}

/// Updates the working copies from the master weights, here and then over the data axis.
void Runner::Parts::share_masters() {
  weights.follow_masters();
  reducer.gather_all();
}

/// Calls the part that runs each opcode.
struct Runner::Parts::Dispatch {
  Parts& of;

  void compute(Token i, const Instruction&) const {
    of.pipe.wait_for_arrivals();
    of.blocks.run(i);
  }
  void optimizer(Token i, const Instruction&) const { of.optimizer.run(i); }
  void norm(Token i, const Instruction&) const { of.optimizer.norm(i); }
  void send(Token i, const Instruction&) const { of.pipe.send(i); }
  void receive(Token i, const Instruction&) const { of.pipe.receive(i); }
  void compress(Token i, const Instruction&) const { of.reducer.compress(i); }
  void reduce_gradient(Token i, const Instruction&) const { of.reducer.reduce(i); }
  void sum_replicas(Token i, const Instruction&) const { of.reducer.sum_replicas(i); }
  void gather(Token i, const Instruction&) const { of.reducer.gather(i); }
  void unshard(Token i, const Instruction&) const { of.reducer.unshard(i); }
};

StepOutcome Runner::Parts::step(std::int64_t index) {
  at.step.store(index, std::memory_order_relaxed);
  at.instruction.store(0, std::memory_order_relaxed);
  device.finish();
  device.forget_marks();
  recording.clear();
  memory.begin_step();
  pipe.begin_step();
  optimizer.begin_step(index);
  StepOutcome outcome;
  outcome.loss_scale = optimizer.loss_scale().value();
  blocks.begin_step(samples.weight() * outcome.loss_scale);
  const Mark begin = device.mark(models::Lane::compute);
  samples.load(index);
  const auto count = static_cast<Token>(rank.ranks.instructions.size());
  for (Token i = 0; i < count; ++i) {
    at.instruction.store(i, std::memory_order_relaxed);
    pipe.before_binding(i);
    memory.follow(i, false);
    visit(i, rank.instruction(i), Dispatch{*this});
    if (i + 1 == count) pipe.wait_for_sends();  // their memory is freed at the end of the step
    memory.follow(i, true);
  }
  reducer.wait_for_all();
  const Mark end = device.mark(models::Lane::compute);
  device.finish();
  at.instruction.store(count, std::memory_order_relaxed);
  recording.resolve(begin);
  outcome.wall = device.time_of(end) - device.time_of(begin);
  outcome.input = samples.times();
  optimizer.report(outcome);
  samples.report(reducer, outcome);
  return outcome;
}

Runner::Runner(const Program& program, const models::Software& software, Device& device,
               Fabric& fabric, RunSettings settings)
    : parts_{std::make_unique<Parts>(accepted(program, software, device, fabric), device, fabric,
                                     std::move(settings))} {}
Runner::~Runner() = default;

StepOutcome Runner::step(std::int64_t index) {
  try {
    return parts_->step(index);
  } catch (...) {
    // Ends the calls that wait for other ranks on the device's queues, so that memory can be freed.
    if (!parts_->device.synchronous()) parts_->fabric.abort("a rank cannot continue");
    throw;
  }
}

void Runner::record(TraceDetail detail) {
  parts_->recording.set(recordable(detail, parts_->rank.program.graphs));
}

Progress Runner::progress() const {
  const RankContext& rank = parts_->rank;
  const StepPosition& at = parts_->at;
  Progress progress;
  progress.step = at.step.load(std::memory_order_relaxed);
  progress.instruction = at.instruction.load(std::memory_order_relaxed);
  const int peer = at.peer.load(std::memory_order_relaxed);
  const int communicator = at.communicator.load(std::memory_order_relaxed);
  const std::size_t count = rank.ranks.instructions.size();
  const bool between = progress.instruction >= count;
  if (peer >= 0) progress.waits_for = fmt::format("rank {}", peer);
  if (communicator >= 0) {
    const auto number = static_cast<std::uint16_t>(communicator);
    progress.waits_for = text_of(rank.program.communicators[number], parts_->calls.group(number));
  }
  progress.text =
      between ? fmt::format("rank {} has finished step {}", rank.rank, progress.step)
              : fmt::format(
                    "rank {} is in step {} at instruction {} of {}, {}", rank.rank, progress.step,
                    progress.instruction, count,
                    models::trace_title(
                        rank.program, rank.instruction(static_cast<Token>(progress.instruction))));
  if (!progress.waits_for.empty()) progress.text += ", and waits for " + progress.waits_for;
  progress.works = progress.waits_for.empty() && rank.device.synchronous();
  return progress;
}

MeasuredMemory Runner::memory() const {
  MeasuredMemory memory = parts_->memory.measured();
  memory.padding = memory.allocated - memory.peak;
  memory.resident = resident_size();
  return memory;
}
GraphCounts Runner::graphs() const {
  return parts_->blocks.graphs();
}
RoutedBytes Runner::routed() const {
  return parts_->blocks.routed();
}
Trace Runner::trace() const {
  Trace trace = parts_->recording.trace();
  trace.note("peak_memory_bytes", parts_->memory.measured().peak.count());
  return trace;
}
const Layout& Runner::layout() const {
  return parts_->layout;
}
Weights& Runner::weights() {
  return parts_->weights;
}
const Weights& Runner::weights() const {
  return parts_->weights;
}
std::optional<LossScaleState> Runner::loss_scale() const {
  const LossScale& scale = parts_->optimizer.loss_scale();
  return scale.counts() ? std::optional{scale.state()} : std::nullopt;
}
void Runner::load_loss_scale(const LossScaleState& state) {
  parts_->optimizer.loss_scale().load(state);
}
void Runner::finish_loading(std::int64_t steps) {
  parts_->weights.finish_loading();
  parts_->optimizer.resume(steps);
  parts_->share_masters();
}

}  // namespace orrery::executor
