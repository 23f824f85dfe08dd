#include "executor/run/runner.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <utility>

#include "executor/run/interpreter.hpp"
#include "models/program/trace_names.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

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

std::int64_t Runner::Interpreter::size_of_state(StateKind kind) const {
  return bits(kind == StateKind::gradient ? gradient_ : state_) / 8;
}

/// The optimizer's buffer holds [master, where it is apart | first moment | second moment].
std::byte* Runner::Interpreter::state_at(StateKind kind, std::int64_t local) const {
  const std::int64_t width = size_of_state(kind);
  const std::int64_t part = layout_.owned() * width;
  const std::int64_t moments = separate_master_ ? part : 0;
  if (kind == StateKind::first_moment) return optimizer_.data() + moments + local * width;
  if (kind == StateKind::second_moment) return optimizer_.data() + moments + part + local * width;
  if (kind == StateKind::parameter && separate_master_) return optimizer_.data() + local * width;
  const bool of_gradient = kind == StateKind::gradient;
  std::byte* buffer = (of_gradient ? gradients_ : parameters_).data();
  const bool owned_only = of_gradient ? shards_sums_ : shards_weights_;
  if (!layout_.sharded() || owned_only) return buffer + local * width;
  for (const Bucket& bucket : layout_.buckets()) {
    if (local < bucket.owned || local >= bucket.owned + bucket.piece) continue;
    return buffer + (layout_.piece_of(bucket) + local - bucket.owned) * width;
  }
  throw ContractError{"state is asked for that this rank does not own"};
}

void Runner::Interpreter::finish_loading(std::int64_t steps) {
  updates_ = steps - scale_.state().skipped;
  follow_masters();
}

Progress Runner::Interpreter::progress() const {
  Progress progress;
  progress.step = at_.step.load(std::memory_order_relaxed);
  progress.instruction = at_.instruction.load(std::memory_order_relaxed);
  const int peer = at_.peer.load(std::memory_order_relaxed);
  const int communicator = at_.communicator.load(std::memory_order_relaxed);
  const std::size_t count = ranks_.instructions.size();
  const bool between = progress.instruction >= count;
  if (peer >= 0) progress.waits_for = fmt::format("rank {}", peer);
  if (communicator >= 0) {
    const auto at = static_cast<std::size_t>(communicator);
    progress.waits_for = text_of(program_.communicators[at], groups_[at]);
  }
  progress.text =
      between
          ? fmt::format("rank {} has ended step {}", rank_, progress.step)
          : fmt::format("rank {} is in step {} at instruction {} of {}, {}", rank_, progress.step,
                        progress.instruction, count,
                        models::trace_title(program_, ranks_.instructions[progress.instruction]));
  if (!progress.waits_for.empty()) progress.text += ", and waits for " + progress.waits_for;
  progress.works = progress.waits_for.empty() && device_.synchronous();
  return progress;
}

Runner::Runner(const models::Program& program, const models::Software& software, Device& device,
               Fabric& fabric, RunSettings settings)
    : run_{std::make_unique<Interpreter>(program, software, device, fabric, std::move(settings))} {}
Runner::~Runner() = default;

StepOutcome Runner::step(std::int64_t index) {
  try {
    return run_->step(index);
  } catch (...) {
    run_->give_up();
    throw;
  }
}
void Runner::record(TraceDetail detail) {
  run_->record(detail);
}
Progress Runner::progress() const {
  return run_->progress();
}
MeasuredMemory Runner::memory() const {
  MeasuredMemory memory = run_->memory();
  memory.padding = memory.allocated - memory.peak;
  memory.resident = resident_size();
  return memory;
}
GraphCounts Runner::graphs() const {
  return run_->graphs();
}
const Trace& Runner::trace() const {
  return run_->trace();
}
const std::vector<StateTensor>& Runner::state_tensors() const {
  return run_->layout().tensors();
}
const std::vector<StateRun>& Runner::state_runs() const {
  return run_->layout().runs();
}
models::DType Runner::state_format() const {
  return run_->state_format();
}
models::DType Runner::gradient_format() const {
  return run_->gradient_format();
}
void Runner::read_state(StateKind kind, std::int64_t local, std::int64_t count, void* to) const {
  run_->device().read(run_->state_at(kind, local), to, Bytes{count * run_->size_of_state(kind)});
}
void Runner::load_state(StateKind kind, std::int64_t local, std::int64_t count, const void* from) {
  run_->device().write(from, run_->state_at(kind, local), Bytes{count * run_->size_of_state(kind)});
}
std::optional<LossScaleState> Runner::loss_scale() const {
  if (!run_->loss_scale().counts()) return std::nullopt;
  return run_->loss_scale().state();
}
void Runner::load_loss_scale(const LossScaleState& state) {
  run_->loss_scale().load(state);
}
void Runner::finish_loading(std::int64_t steps) {
  run_->finish_loading(steps);
}

}  // namespace orrery::executor
