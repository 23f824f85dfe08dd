// Of the micro-batches in flight on a stage the first `partial_micro_batches` recompute some
// layers, the rest all of them: these run phases whose layers are all of kinds that recompute.
//   the k-th forward of a stage recomputes all where k mod (most in flight) >=
//   partial_micro_batches
// Source  Megatron-Core, pipeline_parallel/schedules.py: checkpoint_activations_microbatch, with
//         max_outstanding_backprops = warm-up forwards + 1

#include <algorithm>
#include <map>

#include "models/lowering/lower.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

/// Does the instruction begin a pass of its chunk and micro-batch? Passes may be cut into parts.
bool begins_pass(const Instruction* before, const Instruction& each) {
  return before == nullptr || before->op != each.op || before->chunk != each.chunk ||
         before->micro_batch != each.micro_batch;
}

/// The forwards of a stage in order, and the most whose backward has not begun yet.
struct StageForwards {
  std::vector<const Instruction*> forwards;
  std::int64_t most_in_flight = 0;
};

StageForwards forwards_of(const RankClass& ranks) {
  StageForwards found;
  const Instruction* before = nullptr;
  std::int64_t in_flight = 0;
  for (const Instruction& each : ranks.instructions) {
    if (each.op != Opcode::forward && each.op != Opcode::backward) continue;
    if (begins_pass(before, each)) {
      if (each.op == Opcode::forward) found.forwards.push_back(&each);
      in_flight += each.op == Opcode::forward ? 1 : -1;
      found.most_in_flight = std::max(found.most_in_flight, in_flight);
    }
    before = &each;
  }
  return found;
}

}  // namespace

Phase recomputing(const Program& program, const Phase& phase) {
  Phase copy{phase.name + ".recomputing", {}};
  for (Invocation run : phase.invocations) {
    const BlockUse use = program.use_of(run.block);
    if (use.kind != nullptr && use.kind->recomputing) {
      const LayerKind& other = program.kinds[*use.kind->recomputing];
      run.block = use.direction == Direction::forward ? other.forward
                  : use.direction == Direction::backward
                      ? other.backward
                      : other.weight_gradient.value_or(run.block);
    }
    copy.invocations.push_back(run);
  }
  return copy;
}

Program recompute_by_micro_batch(Program program, const Plan& plan) {
  const std::int64_t partial = plan.recompute.partial_micro_batches;
  if (partial == 0) return program;
  std::map<std::uint32_t, std::uint32_t> made;
  const auto other = [&](std::uint32_t phase) {
    const auto [known, fresh] = made.try_emplace(phase, 0);
    if (!fresh) return known->second;
    Phase copy = recomputing(program, program.phases[phase]);
    return known->second = appended(program.phases, std::move(copy));
  };
  for (RankClass& ranks : program.classes) {
    const auto [forwards, window] = forwards_of(ranks);
    const auto micro_batches = static_cast<std::size_t>(program.step.micro_batches);
    ranks.recomputes.assign(ranks.chunks.size() * micro_batches, false);
    for (std::size_t k = 0; k < forwards.size(); ++k) {
      const Instruction& each = *forwards[k];
      const bool all = static_cast<std::int64_t>(k) % window >= partial;
      const std::size_t place = program.chunks[each.chunk].place;
      ranks.recomputes[place * micro_batches + each.micro_batch] = all;
    }
    for (Instruction& each : ranks.instructions) {
      const bool runs = each.op == Opcode::forward || descends(each);
      if (runs && recomputes_all(program, ranks, each)) each.target = other(each.target);
    }
  }
  return program;
}

}  // namespace orrery::models
