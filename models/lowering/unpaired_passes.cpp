// With expert_overlap=micro-batches the all-to-alls of experts overlap with the opposite pass of
// another micro-batch. Some passes have no such partner: those that fill and drain the pipeline,
// and those that the schedule does not put next to one. They run copies of their blocks whose
// all-to-alls overlap with nothing.
// Source  Megatron-Core, pipeline_parallel/combined_1f1b.py: forward and backward are combined only
//         in the steady state; DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1, whose pairs are
//         of both directions of the pipeline (github.com/deepseek-ai/DualPipe, dualpipe.py)

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/lowering/lower.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

bool hides(const Block& block) {
  return std::ranges::any_of(
      block.operations, [](const Operation& op) { return op.exchange().overlaps_micro_batch; });
}

std::optional<std::uint32_t> unpaired_block(Program& program, std::uint32_t of) {
  if (!hides(program.blocks[of])) return std::nullopt;
  Block copy = program.blocks[of];
  copy.name += ".alone";
  for (Operation& op : copy.operations) {
    if (op.exchange().overlaps_micro_batch) op.mutable_exchange().overlaps_micro_batch = false;
  }
  return appended(program.blocks, std::move(copy));
}

/// One pass of a chunk and micro-batch: consecutive compute instructions with the same opcode.
struct ChunkPass {
  Opcode op = Opcode::forward;
  std::uint16_t chunk = 0;
  std::uint32_t micro_batch = 0;
  std::vector<std::size_t> parts;  // indices in the list
};

bool continues(const ChunkPass& pass, const Instruction& each) {
  return pass.op == each.op && pass.chunk == each.chunk && pass.micro_batch == each.micro_batch;
}

std::vector<ChunkPass> passes_of(const RankClass& ranks) {
  std::vector<ChunkPass> passes;
  for (std::size_t i = 0; i < ranks.instructions.size(); ++i) {
    const Instruction& each = ranks.instructions[i];
    const bool of_chunk = each.op == Opcode::forward || descends(each);
    if (!of_chunk) continue;
    if (passes.empty() || !continues(passes.back(), each)) {
      passes.push_back({each.op, each.chunk, each.micro_batch, {}});
    }
    passes.back().parts.push_back(i);
  }
  return passes;
}

/// Does each of two neighbouring passes overlap with the all-to-alls of the other? They are a
/// forward and a backward of different micro-batches or chunks; of different chunks where a stage
/// has chunks in both directions of the pipeline (`both_ways`).
bool are_pair(const ChunkPass& one, const ChunkPass& other, bool both_ways) {
  const auto is = [&](Opcode a, Opcode b) { return one.op == a && other.op == b; };
  const bool opposite =
      is(Opcode::forward, Opcode::backward) || is(Opcode::backward, Opcode::forward);
  const bool same_chunk = one.chunk == other.chunk;
  return opposite && !(same_chunk && (both_ways || one.micro_batch == other.micro_batch));
}

/// The passes that are in no pair.
std::vector<ChunkPass> unpaired_passes(const RankClass& ranks, bool both_ways) {
  std::vector<ChunkPass> all = passes_of(ranks), alone;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size() && are_pair(all[i], all[i + 1], both_ways)) {
      ++i;
    } else {
      alone.push_back(std::move(all[i]));
    }
  }
  return alone;
}

/// Copies of phases that run the blocks without overlap, each made once.
class UnpairedPhases {
 public:
  explicit UnpairedPhases(Program& program) : program_{program} {
    for (LayerKind& kind : program.kinds) {
      kind.forward_unpaired = unpaired_block(program, kind.forward);
      kind.backward_unpaired = unpaired_block(program, kind.backward);
    }
  }

  std::uint32_t of(std::uint32_t phase) {
    const auto [known, fresh] = made_.try_emplace(phase, phase);
    if (!fresh) return known->second;
    Phase copy = program_.phases[phase];
    copy.name += ".alone";
    for (Invocation& run : copy.invocations) run.block = block_of(run.block);
    return known->second = appended(program_.phases, std::move(copy));
  }

 private:
  std::uint32_t block_of(std::uint32_t block) const {
    const BlockUse use = program_.use_of(block);
    if (use.kind == nullptr || use.direction == Direction::weight_gradient) return block;
    const bool forward = use.direction == Direction::forward;
    return (forward ? use.kind->forward_unpaired : use.kind->backward_unpaired).value_or(block);
  }

  Program& program_;
  std::map<std::uint32_t, std::uint32_t> made_;
};

}  // namespace

Program mark_unpaired_passes(Program program, const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  const bool any = std::ranges::any_of(program.blocks, hides);
  if (!any) return program;
  const bool both_ways = plan.stages.table.empty() &&
                         inputs.schedules->at(plan.stages.schedule).placement != Placement::round;
  UnpairedPhases phases{program};
  for (RankClass& ranks : program.classes) {
    for (const ChunkPass& pass : unpaired_passes(ranks, both_ways)) {
      if (pass.op == Opcode::weight_gradient) continue;
      for (const std::size_t i : pass.parts) {
        ranks.instructions[i].target = phases.of(ranks.instructions[i].target);
      }
    }
  }
  return program;
}

}  // namespace orrery::models
