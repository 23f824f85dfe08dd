#include <fmt/format.h>

#include <array>

#include "models/program/check/check.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Number of layers that a phase runs, embedding and head included, by direction.
using Work = std::array<std::int64_t, 4>;
constexpr auto forward = static_cast<std::size_t>(Direction::forward);
constexpr auto backward = static_cast<std::size_t>(Direction::backward);
constexpr auto weight_gradient = static_cast<std::size_t>(Direction::weight_gradient);

std::vector<Work> work_of_phases(const Program& program) {
  std::vector<Work> all;
  for (const Phase& phase : program.phases) {
    Work& sum = all.emplace_back();
    for (const Invocation& run : phase.invocations) {
      sum[static_cast<std::size_t>(program.use_of(run.block).direction)] += run.count;
    }
  }
  return all;
}

/// The work that each chunk must do for one micro-batch: as much backward as forward, and the
/// weight gradients of kinds that have a separate block for them.
std::vector<Work> due_of_chunks(const Program& program) {
  std::vector<Work> all;
  for (const Chunk& chunk : program.chunks) {
    Work& due = all.emplace_back();
    for (const Invocation& run : program.phases[chunk.forward].invocations) {
      const BlockUse use = program.use_of(run.block);
      due[forward] += run.count;
      due[backward] += run.count;
      if (use.kind != nullptr && use.kind->weight_gradient) due[weight_gradient] += run.count;
    }
  }
  return all;
}

/// Does a block run the same kind of layer as another, or the one that recomputes for it, in the
/// same direction?
bool alike(const Program& program, std::uint32_t one, std::uint32_t other) {
  if (one == other) return true;
  const BlockUse a = program.use_of(one), b = program.use_of(other);
  if (a.kind == nullptr || b.kind == nullptr || a.direction != b.direction) return false;
  return a.kind == b.kind ||
         (b.kind->recomputing && a.kind == &program.kinds[*b.kind->recomputing]);
}

/// Does `part` continue the forward phase `whole` after its first `done` layers?
bool goes_on(const Program& program, const Phase& whole, std::int64_t done, const Phase& part) {
  for (const Invocation& run : part.invocations) {
    std::int64_t before = done;
    auto due = whole.invocations.begin();
    while (due != whole.invocations.end() && before >= due->count) before -= (due++)->count;
    if (due == whole.invocations.end() || !alike(program, run.block, due->block)) return false;
    if (run.first_layer >= 0 && run.first_layer != due->first_layer + before) return false;
    if (run.count > due->count - before) return false;
    done += run.count;
  }
  return true;
}

/// Follows one class's progress through its chunks and micro-batches.
class CoverageCheck : public ClassCheck {
 public:
  CoverageCheck(const Program& program, const std::vector<Work>& work, const std::vector<Work>& due,
                std::uint32_t c)
      : ClassCheck{program, c},
        work_{work},
        due_{due},
        micro_batches_{static_cast<std::size_t>(program.step.micro_batches)},
        done_(program.classes[c].chunks.size() * micro_batches_) {}

  void compute(Token i, const Instruction& each) {
    if (each.micro_batch >= micro_batches_) refuse(i, "there is no such micro-batch");
    if (!runs(each.chunk, each.micro_batch)) {
      refuse(i, "belongs to another copy of the model");
    }
    if (updated_) refuse(i, "runs after the optimizer, which reads all gradients");
    const std::size_t place = program_.chunks[each.chunk].place;
    Work& done = done_[place * micro_batches_ + each.micro_batch];
    descends(each) ? run_backward(i, each, done) : run_forward(i, each, done);
  }
  void optimizer(Token, const Instruction&) { updated_ = true; }

  void require_all() const {
    for (std::size_t at = 0; at < done_.size(); ++at) {
      const std::uint32_t chunk = ranks_.chunks[at / micro_batches_];
      const Work& done = done_[at];
      const auto micro_batch = static_cast<std::int64_t>(at % micro_batches_);
      if (done == due_[chunk] || !runs(chunk, micro_batch)) continue;
      throw ContractError{
          fmt::format("stage {}: c{} mb{} never runs {}", ranks_.stage, chunk, at % micro_batches_,
                      done[forward] == 0                       ? "forward"
                      : done[forward] < due_[chunk][forward]   ? "all of forward"
                      : done[backward] < due_[chunk][backward] ? "all of backward"
                                                               : "all weight gradients")};
    }
  }

 private:
  bool runs(std::uint32_t chunk, std::int64_t micro_batch) const {
    return program_.copies == 1 || program_.runs(program_.chunks[chunk], micro_batch);
  }

  void run_forward(Token i, const Instruction& each, Work& done) const {
    const std::uint32_t own = program_.chunks[each.chunk].forward;
    const std::int64_t due = due_[each.chunk][forward];
    if (done[forward] == due) refuse(i, "runs forward a second time");
    if (each.target == own && done[forward] == 0) {
      done[forward] = due;
      return;
    }
    const Phase& whole = program_.phases[own];
    const Phase& part = program_.phases[each.target];
    if (!goes_on(program_, whole, done[forward], part)) {
      refuse(i, goes_on(program_, whole, 0, part) ? "runs forward a second time"
                                                  : "runs another chunk's phase");
    }
    done[forward] += work_[each.target][forward];
  }

  void run_backward(Token i, const Instruction& each, Work& done) const {
    const Work& due = due_[each.chunk];
    if (done[forward] < due[forward]) refuse(i, "runs backward before forward");
    if (each.op == Opcode::weight_gradient && done[backward] < due[backward]) {
      refuse(i, "runs weight gradients before backward");
    }
    for (const std::size_t way : {backward, weight_gradient}) {
      done[way] += work_[each.target][way];
      if (done[way] > due[way]) {
        refuse(i, way == backward ? "runs backward a second time"
                                  : "runs weight gradients a second time");
      }
    }
  }

  const std::vector<Work>&work_, &due_;  // by phase, by chunk
  std::size_t micro_batches_;
  bool updated_ = false;
  std::vector<Work> done_;  // by chunk of the class and micro-batch
};

void check_layers(const Program& program, std::int64_t next) {
  const auto layers = static_cast<std::int64_t>(program.kind_of_layer.size());
  if (next == layers) return;
  throw ContractError{fmt::format("the chunks run {} layers, the model has {}", next, layers)};
}

/// The forward phases of all chunks of a copy of the model, in order, run every layer once.
void check_layers(const Program& program) {
  std::int64_t next = 0;
  for (std::size_t chunk = 0; chunk < program.chunks.size(); ++chunk) {
    if (chunk > 0 && program.chunks[chunk].copy != program.chunks[chunk - 1].copy) {
      check_layers(program, next);
      next = 0;
    }
    for (const Invocation& run : program.phases[program.chunks[chunk].forward].invocations) {
      if (run.first_layer < 0) continue;
      if (run.first_layer != next) {
        throw ContractError{fmt::format("c{} begins at layer {}, the chunk before ends at {}",
                                        chunk, run.first_layer, next)};
      }
      next += run.count;
    }
  }
  check_layers(program, next);
}

}  // namespace

void check_coverage(const Program& program) {
  check_layers(program);
  const std::vector<Work> work = work_of_phases(program), due = due_of_chunks(program);
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    CoverageCheck one{program, work, due, c};
    walk(program, c, one);
    one.require_all();
  }
}

}  // namespace orrery::models
