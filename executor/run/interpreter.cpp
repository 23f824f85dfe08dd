#include "executor/run/interpreter.hpp"

#include <algorithm>
#include <vector>

#include "executor/errors.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::BufferKind;
using models::Lane;
using models::Opcode;

}  // namespace

StepOutcome Runner::Interpreter::step(std::int64_t index) {
  at_.step.store(index, std::memory_order_relaxed);
  at_.instruction.store(0, std::memory_order_relaxed);
  device_.finish();
  device_.forget_marks();
  recording_.clear();
  trace_made_ = false;
  next_change_ = 0;
  pipe_.begin_step();
  gradients_seen_ = false;
  captured_.begin_step();
  place_.loss_scale = mean_ * scale_.value();
  StepOutcome outcome;
  outcome.loss_scale = scale_.value();
  load_batch(index);
  const Mark begin = device_.mark(Lane::compute);
  for (std::uint32_t i = 0; i < ranks_.instructions.size(); ++i) {
    at_.instruction.store(i, std::memory_order_relaxed);
    hold(i, false);
    execute(i);
    if (i + 1 == ranks_.instructions.size())
      pipe_.wait_for_sends();  // whose memory ends with the step
    hold(i, true);
  }
  wait_for_data();
  const Mark end = device_.mark(Lane::compute);
  device_.finish();
  at_.instruction.store(ranks_.instructions.size(), std::memory_order_relaxed);
  recording_.resolve(device_, begin);
  outcome.wall = device_.time_of(end) - device_.time_of(begin);
  outcome.gradient_norm = norm_;
  outcome.ring_norm = ring_norm_;
  outcome.skipped = scale_.state().skipped;
  report(outcome);
  return outcome;
}

/// The micro-batches of this data rank: tokens where the embedding is, labels where the head is.
void Runner::Interpreter::load_batch(std::int64_t step) {
  if (batch_.data() == nullptr) return;
  const models::StepShape& of = program_.step;
  const std::int64_t samples = of.micro_batches * of.sequences, s = of.seq_len;
  std::vector<std::int64_t> sample(static_cast<std::size_t>(s + 1));
  std::vector<std::int64_t> both(static_cast<std::size_t>(2 * samples * s));
  for (std::int64_t i = 0; i < samples; ++i) {
    settings_.tokens->fill(step, data_ * samples + i, sample);
    alive();
    std::copy(sample.begin(), sample.end() - 1, both.begin() + i * s);
    std::copy(sample.begin() + 1, sample.end(), both.begin() + (samples + i) * s);
  }
  device_.write(both.data(), batch_.data(), batch_.bytes());
}

/// Counts the buffers that an instruction binds, or frees; and waits for the transfers that must
/// have left what it binds.
void Runner::Interpreter::hold(std::uint32_t i, bool at_end) {
  if (!at_end) pipe_.before_binding(i);
  const auto& changes = plan_.changes();
  bool grew = false;
  for (; next_change_ < changes.size() && changes[next_change_].instruction == i &&
         changes[next_change_].at_end == at_end;
       ++next_change_) {
    const MemoryPlan::Change& change = changes[next_change_];
    held_[static_cast<std::size_t>(change.kind)] += Bytes{change.bytes};
    grew = grew || change.bytes > 0;
    const bool freed = change.bytes < 0 && change.kind != BufferKind::workspace;
    const bool sent = ranks_.instructions[i].op == Opcode::send;
    if (freed && !sent && settings_.freed == Freed::poisoned) poison(change.offset, -change.bytes);
  }
  if (!grew || models::total(held_) <= memory_.peak) return;
  memory_.peak = models::total(held_);
  memory_.by_kind = held_;
  memory_.instruction = i;
}

/// All bits set: NaN in every format.
void Runner::Interpreter::poison(std::int64_t offset, std::int64_t bytes) {
  device_.finish();
  const std::vector<std::byte> nan(static_cast<std::size_t>(bytes), std::byte{0xff});
  device_.write(nan.data(), arena_.data() + offset, Bytes{bytes});
}

/// What runs for each opcode.
struct Runner::Interpreter::Dispatch {
  Interpreter& of;

  void compute(std::uint32_t i, const Instruction&) const { of.run_phase(i); }
  void optimizer(std::uint32_t i, const Instruction&) const { of.optimize(i); }
  void compress(std::uint32_t i, const Instruction&) const { of.compress(i); }
  void phase(std::uint32_t i, const Instruction&) const { of.run_phase(i); }
  void send(std::uint32_t i, const Instruction&) const { of.pipe_.send(i, of.arena_.data()); }
  void receive(std::uint32_t i, const Instruction&) const { of.pipe_.receive(i, of.arena_.data()); }
  void reduce_gradient(std::uint32_t i, const Instruction&) const { of.reduce(i); }
  void tie(std::uint32_t i, const Instruction&) const { of.tie(i); }
  void norm(std::uint32_t i, const Instruction&) const { of.norm(i); }
  void gather(std::uint32_t i, const Instruction&) const { of.gather(i); }
  void unshard(std::uint32_t i, const Instruction&) const { of.unshard(i); }
  void joint(std::uint32_t, const Instruction&) const {
    throw RunFailure{Exit::invalid_program, "an instruction that the executor does not know"};
  }
};

void Runner::Interpreter::execute(std::uint32_t i) {
  visit(i, ranks_.instructions[i], Dispatch{*this});
}

std::byte* Runner::Interpreter::saved_of(std::uint32_t i, std::uint32_t block,
                                         std::int64_t layer) const {
  const ChunkPlan& chunk = plan_.chunk(ranks_.instructions[i].chunk);
  const std::size_t place = chunk.place_of(*program_.use_of(block).kind, layer);
  return arena_.data() + plan_.bound(i).saved + chunk.layers[place].saved;
}

/// Where a layer of a chunk leaves what the next one reads: forward in the next one's saved input,
/// backward in one of two buffers of the workspace, and at the chunk's end in what is to be sent.
std::byte* Runner::Interpreter::output_of(std::uint32_t i, const ChunkPlan& chunk,
                                          std::size_t place) {
  const Bound& bound = plan_.bound(i);
  std::byte* leaving = bound.out < 0 ? nullptr : arena_.data() + bound.out;
  if (ranks_.instructions[i].op == Opcode::forward) {
    if (place + 1 == chunk.layers.size()) return leaving;
    const ChunkPlan::Layer& next = chunk.layers[place + 1];
    return saved_of(i, next.forward, next.layer) + blocks_[next.forward].arrival;
  }
  if (place == 0) return leaving;
  next_edge_ = 1 - next_edge_;
  return arena_.data() + plan_.edge(next_edge_);
}

void Runner::Interpreter::run_phase(std::uint32_t i) {
  pipe_.wait_for_arrivals();
  const Instruction& each = ranks_.instructions[i];
  if (each.awaits != models::no_token) await(each.awaits);
  if (shards_sums_ && each.op == Opcode::backward) fill_next_bucket(i);
  const ChunkPlan& chunk = plan_.chunk(each.chunk);
  const bool backward = each.op == Opcode::backward;
  if (backward && each.target == program_.chunks[each.chunk].backward) flowing_ = nullptr;
  std::size_t entry = 0;
  if (recording_.instructions() && !recording_.operations()) {
    entry = recording_.add(i, device_.mark(Lane::compute));
  }
  for (const models::Invocation& run : program_.phases[each.target].invocations) {
    for (std::int64_t n = 0; n < run.count; ++n) {
      const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + (backward ? -n : n);
      const models::LayerKind& kind = *program_.use_of(run.block).kind;
      const std::size_t place = chunk.place_of(kind, layer);
      const bool first_of_chunk = backward && place + 1 == chunk.layers.size();
      if (first_of_chunk) {
        const std::int64_t in = plan_.bound(i).in;
        flowing_ = in < 0 ? nullptr : arena_.data() + in;
        next_edge_ = 0;  // every backward leaves the same addresses to graphs
      }
      std::byte* output = output_of(i, chunk, place);
      run_block(i, run.block, layer, flowing_, output);
      if (backward) flowing_ = output;
      const bool predicts = !backward && kind.part == models::ModelPart::head;
      if (predicts) keep_statistics(each.micro_batch);
    }
  }
  if (recording_.instructions() && !recording_.operations()) {
    recording_.end(entry, device_.mark(Lane::compute));
  }
}

/// A step has failed: what waits for other ranks on the device's queues ends, so that its memory
/// can be given back.
void Runner::Interpreter::give_up() noexcept {
  if (!device_.synchronous()) fabric_.abort("a rank cannot go on");
}

const Trace& Runner::Interpreter::trace() const {
  if (!trace_made_) {
    trace_ = recording_.trace();
    trace_.note("peak_memory_bytes", memory_.peak.count());
  }
  trace_made_ = true;
  return trace_;
}

}  // namespace orrery::executor
