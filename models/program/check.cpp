#include "models/program/check.hpp"

#include <fmt/format.h>

#include <limits>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction) {
  const RankClass& ranks = program.classes[rank_class];
  const Instruction& each = ranks.instructions[instruction];
  std::string text = fmt::format("stage {} i{} {}", ranks.stage, instruction, name(each.op));
  switch (each.op) {
    case Opcode::forward:
    case Opcode::backward:
    case Opcode::send:
    case Opcode::receive:
      return text + fmt::format(" c{} mb{}", each.chunk, each.micro_batch);
    case Opcode::optimizer:
    case Opcode::compress:
      return text;
    default:
      break;
  }
  if (each.target >= program.collectives.size()) return text;
  return text + fmt::format(" '{}'", program.collectives[each.target].name);
}

namespace {

/// Every instruction with its class, in order.
template <class Visit>
void for_each_instruction(const Program& program, Visit visit) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    const std::vector<Instruction>& list = program.classes[c].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) visit(c, i, list[i]);
  }
}

/// How many things an instruction's target may choose from.
std::size_t choices(const Program& program, Opcode op) {
  switch (op) {
    case Opcode::forward:
    case Opcode::backward:
    case Opcode::optimizer:
    case Opcode::compress:
      return program.phases.size();
    case Opcode::send:
    case Opcode::receive:
      return program.channels.size();
    default:
      return program.collectives.size();
  }
}

bool names_chunk(Opcode op) {
  return op == Opcode::forward || op == Opcode::backward || op == Opcode::send ||
         op == Opcode::receive;
}

/// Layers and ends (embedding, head) that a phase runs.
struct PhaseWork {
  std::int64_t forward = 0, backward = 0;
};

std::vector<PhaseWork> work_of_phases(const Program& program) {
  std::vector<PhaseWork> work;
  for (const Phase& phase : program.phases) {
    PhaseWork sum;
    for (const Invocation& run : phase.invocations) {
      if (run.block >= first_step_block) continue;
      (run.block % 2 == 0 ? sum.forward : sum.backward) += run.count;
    }
    work.push_back(sum);
  }
  return work;
}

/// Does a part of a forward run begin with the unit (layer or end) that is `done` units into it?
bool goes_on(const Phase& whole, std::int64_t done, const Phase& part) {
  for (const Invocation& run : part.invocations) {
    std::int64_t before = done;
    auto due = whole.invocations.begin();
    while (due != whole.invocations.end() && before >= due->count) before -= (due++)->count;
    if (due == whole.invocations.end() || run.block != due->block) return false;
    if (run.block == layer_forward && run.first_layer != due->first_layer + before) return false;
    if (run.count > due->count - before) return false;
    done += run.count;
  }
  return true;
}

/// One class's progress through its chunks and micro-batches.
class ComputeCheck {
 public:
  ComputeCheck(const Program& program, const std::vector<PhaseWork>& work, std::uint32_t c)
      : program_{program},
        work_{work},
        class_{c},
        stages_{static_cast<std::uint32_t>(program.plan.pipeline)},
        micro_batches_{static_cast<std::size_t>(program.plan.micro_batches())},
        done_(static_cast<std::size_t>(program.plan.virtual_stages) * micro_batches_) {}

  void run() {
    const std::vector<Instruction>& list = program_.classes[class_].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Instruction& each = list[i];
      if (each.op == Opcode::forward) forward(i, each);
      if (each.op == Opcode::backward) backward(i, each);
    }
    for (std::size_t at = 0; at < done_.size(); ++at) {
      const auto chunk = static_cast<std::uint32_t>(at / micro_batches_) * stages_ + class_;
      const PhaseWork& done = done_[at];
      if (done.backward == program_work(chunk)) continue;
      throw ContractError{fmt::format("stage {}: c{} mb{} never runs {}",
                                      program_.classes[class_].stage, chunk, at % micro_batches_,
                                      done.forward == 0                    ? "forward"
                                      : done.forward < program_work(chunk) ? "all of forward"
                                                                           : "all of backward")};
    }
  }

 private:
  std::int64_t program_work(std::uint32_t chunk) const {
    return work_[forward_phase(chunk)].forward;
  }
  PhaseWork& done(std::size_t i, const Instruction& each) {
    if (each.micro_batch >= micro_batches_) refuse(i, "there is no such micro-batch");
    return done_[each.chunk / stages_ * micro_batches_ + each.micro_batch];
  }
  [[noreturn]] void refuse(std::size_t i, std::string_view problem) const {
    throw ContractError{fmt::format("{}: {}", place(program_, class_, i), problem)};
  }

  void forward(std::size_t i, const Instruction& each) {
    std::int64_t& forward = done(i, each).forward;
    const Phase& whole = program_.phases[forward_phase(each.chunk)];
    if (forward == program_work(each.chunk)) refuse(i, "runs forward a second time");
    const Phase& part = program_.phases[each.target];
    if (!goes_on(whole, 0, part) && !goes_on(whole, forward, part)) {
      refuse(i, "runs another chunk's phase");
    }
    if (!goes_on(whole, forward, part)) refuse(i, "runs forward a second time");
    forward += work_[each.target].forward;
  }

  void backward(std::size_t i, const Instruction& each) {
    PhaseWork& work = done(i, each);
    if (work.forward < program_work(each.chunk)) refuse(i, "runs backward before forward");
    work.backward += work_[each.target].backward;
    if (work.backward > program_work(each.chunk)) refuse(i, "runs backward a second time");
  }

  const Program& program_;
  const std::vector<PhaseWork>& work_;
  std::uint32_t class_;
  std::uint32_t stages_;
  std::size_t micro_batches_;
  std::vector<PhaseWork> done_;  // by virtual stage and micro-batch
};

/// Forward phases of all chunks, in order, run every layer of the model once.
void check_layers(const Program& program) {
  std::int64_t next = 0;
  for (std::int64_t chunk = 0; chunk < program.plan.chunks(); ++chunk) {
    for (const Invocation& run : program.phases[forward_phase(chunk)].invocations) {
      if (run.block != layer_forward) continue;
      if (run.first_layer != next) {
        throw ContractError{fmt::format("c{} begins at layer {}, the chunk before ends at {}",
                                        chunk, run.first_layer, next)};
      }
      next += run.count;
    }
  }
  if (next == program.model.layers) return;
  throw ContractError{
      fmt::format("the chunks run {} layers, the model has {}", next, program.model.layers)};
}

}  // namespace

void check_targets(const Program& program) {
  for (const Phase& phase : program.phases) {
    for (const Invocation& run : phase.invocations) {
      if (run.block < program.blocks.size()) continue;
      throw ContractError{fmt::format("phase {} runs block {}, there are {}", phase.name, run.block,
                                      program.blocks.size())};
    }
  }
  const auto stages = static_cast<std::uint32_t>(program.plan.pipeline);
  const auto chunks = static_cast<std::uint32_t>(program.plan.chunks());
  for_each_instruction(program, [&](std::uint32_t c, std::size_t i, const Instruction& each) {
    if (each.target >= choices(program, each.op)) {
      throw ContractError{
          fmt::format("{}: there is no target {}", place(program, c, i), each.target)};
    }
    const bool at_home = each.chunk < chunks && each.chunk % stages == c;
    if (names_chunk(each.op) && !at_home) {
      throw ContractError{fmt::format("{}: the chunk is not of this stage", place(program, c, i))};
    }
  });
}

void check_compute(const Program& program) {
  check_layers(program);
  const std::vector<PhaseWork> work = work_of_phases(program);
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ComputeCheck{program, work, c}.run();
}

void check(const Program& program) {
  check_blocks(program);
  check_targets(program);
  check_compute(program);
  check_buffers(program);
  check_transfers(program);
  check_collectives(program);
  check_reductions(program);
  check_shards(program);
  check_progress(program);
}

}  // namespace orrery::models
