// Splits backward in two: the input gradient, for which the previous stage waits, and the weight
// gradients, for which no stage waits before the optimizer, so that a schedule may put them where a
// stage would be idle.
// Source  Qi et al. 2023, "Zero bubble pipeline parallelism", arXiv 2401.10241

#include <algorithm>
#include <vector>

#include "models/lowering/lower.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

/// Divides the operations of one backward block.
class BlockSplitter {
 public:
  BlockSplitter(const Block& forward, Block& backward, Block& weights)
      : forward_{forward},
        backward_{backward},
        weights_{weights},
        stays_(backward.operations.size(), false) {}

  void run() {
    for (std::size_t i = 0; i < stays_.size(); ++i) stays_[i] = must_stay(i);
    while (grew()) {
    }
    divide();
    for (Block* each : {&backward_, &weights_}) drop_unused(*each);
    link(backward_);
    link(weights_);
  }

 private:
  const Operation& at(std::size_t i) const { return backward_.operations[i]; }
  static bool has(const std::vector<OperandId>& ids, OperandId id) {
    return std::ranges::find(ids, id) != ids.end();
  }

  /// Operations that must stay in backward: recomputation, those that write the block's output, and
  /// those that read forward's input, which is freed after backward.
  bool must_stay(std::size_t i) const {
    if (at(i).pass == Pass::recompute) return true;
    const auto leaves = [&](OperandId id) { return backward_.operands[id].role == Role::output; };
    const auto arrived = [&](OperandId id) {
      const Operand& each = backward_.operands[id];
      const auto source = forward_.find(each.name);
      return each.role == Role::saved && source && forward_.operands[*source].role == Role::input;
    };
    return std::any_of(at(i).writes.begin(), at(i).writes.end(), leaves) ||
           std::any_of(at(i).reads.begin(), at(i).reads.end(), arrived);
  }

  /// Also keeps in backward an operation that writes what a kept one reads, or that reads what a
  /// later kept one overwrites. Returns whether there was any.
  bool grew() {
    bool grew = false;
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      if (stays_[i] || !needed(i)) continue;
      stays_[i] = grew = true;
    }
    return grew;
  }

  bool needed(std::size_t i) const {
    for (std::size_t j = 0; j < stays_.size(); ++j) {
      if (!stays_[j]) continue;
      const bool reads_it =
          std::any_of(at(i).writes.begin(), at(i).writes.end(), [&](OperandId id) {
            return backward_.operands[id].role != Role::gradient && has(at(j).reads, id);
          });
      const bool overwrites =
          j > i && std::any_of(at(i).reads.begin(), at(i).reads.end(), [&](OperandId id) {
            return backward_.operands[id].role != Role::gradient && has(at(j).writes, id);
          });
      if (reads_it || overwrites) return true;
    }
    return false;
  }

  /// Moves the other operations to `weights_`. What they read of backward becomes delayed: it stays
  /// alive between the two blocks.
  void divide() {
    std::vector<Operation> all = std::move(backward_.operations);
    weights_.operands = backward_.operands;
    std::vector<bool> made(backward_.operands.size(), false);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (stays_[i]) {
        for (const OperandId id : all[i].writes) made[id] = true;
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const OperandId id : all[i].reads) {
        if (!stays_[i]) delay(id, made[id]);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      (stays_[i] ? backward_ : weights_).operations.push_back(std::move(all[i]));
    }
  }

  void delay(OperandId id, bool made) {
    Operand& before = backward_.operands[id];
    Operand& after = weights_.operands[id];
    if (before.role == Role::input) after.role = Role::delayed;
    if (before.role == Role::temporary && made) before.role = after.role = Role::delayed;
  }

  /// Removes unused operands, except backward's input: the gradient that is received needs a place.
  void drop_unused(Block& block) const {
    std::vector<bool> kept;
    for (OperandId id = 0; id < block.operands.size(); ++id) {
      const auto uses = [&](const Operation& op) {
        return has(op.reads, id) || has(op.writes, id);
      };
      const bool arrives = &block == &backward_ && block.operands[id].role == Role::input;
      kept.push_back(arrives || std::ranges::any_of(block.operations, uses));
    }
    block.keep(kept);
  }

  const Block& forward_;
  Block &backward_, &weights_;
  std::vector<bool> stays_;  // by operation: does it stay in backward?
};

/// Leaves the input gradient in "layer.backward" and adds "layer.weight_gradient".
void split_kind(Program& program, std::size_t kind) {
  Block weights;
  weights.name = program.kinds[kind].name + ".weight_gradient";
  split_block(program.blocks[program.kinds[kind].forward],
              program.blocks[program.kinds[kind].backward], weights);
  if (weights.operations.empty()) return;
  program.kinds[kind].weight_gradient = appended(program.blocks, std::move(weights));
}

/// The weight gradients of a chunk, layer by layer as backward went.
Phase weight_phase(const Program& program, std::uint32_t chunk) {
  Phase phase{"weight_gradient.c" + std::to_string(chunk), {}};
  for (const Invocation& run : program.phases[program.chunks[chunk].backward].invocations) {
    const LayerKind& kind = *program.use_of(run.block).kind;
    if (!kind.weight_gradient) continue;
    phase.invocations.push_back({*kind.weight_gradient, run.first_layer, run.count});
  }
  return phase;
}

}  // namespace

void split_block(const Block& forward, Block& backward, Block& weights) {
  BlockSplitter{forward, backward, weights}.run();
}

Program split_backward(Program program, SplitKinds which) {
  const auto later = [](const Instruction& each) { return each.op == Opcode::weight_gradient; };
  const bool any = std::ranges::any_of(
      program.classes, [&](const auto& c) { return std::ranges::any_of(c.instructions, later); });
  if (!any) return program;
  for (std::size_t kind = 0; kind < program.kinds.size(); ++kind) {
    const bool head = program.kinds[kind].part == ModelPart::head;
    if (head || which == SplitKinds::all) split_kind(program, kind);
  }
  for (std::uint32_t c = 0; c < program.chunks.size(); ++c) {
    if (which == SplitKinds::head && !program.chunks[c].has_head) continue;
    program.chunks[c].weight_gradient = appended(program.phases, weight_phase(program, c));
  }
  for (RankClass& ranks : program.classes) {
    for (Instruction& each : ranks.instructions) {
      if (later(each)) each.target = *program.chunks[each.chunk].weight_gradient;
    }
  }
  return program;
}

}  // namespace orrery::models
