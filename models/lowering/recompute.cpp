#include <algorithm>
#include <utility>
#include <vector>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// Selects the forward operations of a block that backward repeats.
class Repetition {
 public:
  /// All of it, or the operations of these modules.
  Repetition(const Block& forward, bool all, WordSet<RecomputeModule> modules)
      : forward_{forward}, all_{all}, modules_{modules}, dropped_(forward.operands.size(), false) {
    for (const Operation& op : forward.operations) repeated_.push_back(repeats(op));
  }

  bool repeats(std::size_t i) const { return repeated_[i]; }
  /// Is the operand remade although an operation that is not repeated reads it?
  bool drops(OperandId id) const { return dropped_[id]; }

 private:
  bool listed(RecomputeModule each) const { return modules_.has(each); }

  bool repeats(const Operation& op) {
    if (all_) return true;
    if (listed(RecomputeModule::core_attn) && op.module.attention_core) return true;
    if (listed(RecomputeModule::mlp) && op.module.mlp) return true;
    if (listed(RecomputeModule::moe) && op.module.moe) return true;
    if (!remade(op)) return false;
    for (const OperandId id : op.writes) dropped_[id] = true;
    return true;
  }

  /// Operations whose outputs are dropped and remade: norms of whole rows (not those of a part's
  /// output, which no backward reads) and activation functions, which are cheap; the GEMMs that
  /// expand latents, whose outputs are far larger than latents; and casts of such outputs to few
  /// bits.
  bool remade(const Operation& op) const {
    if (op.module.latent_up && listed(RecomputeModule::mla_up_proj)) return true;
    if (op.kind == OpKind::norm) {
      return listed(RecomputeModule::layernorm) && op.heads().dim == 0 && !only_added(op.writes[0]);
    }
    if (op.kind == OpKind::activation) return listed(RecomputeModule::activation);
    return op.kind == OpKind::quantise &&
           std::ranges::all_of(op.reads, [&](OperandId id) { return bool{dropped_[id]}; });
  }

  /// Is the operand read by additions alone, whose backward needs no input?
  bool only_added(OperandId id) const {
    bool added = false;
    for (const Operation& op : forward_.operations) {
      if (std::ranges::find(op.reads, id) == op.reads.end()) continue;
      if (op.kind != OpKind::add) return false;
      added = true;
    }
    return added;
  }

  const Block& forward_;
  bool all_;
  WordSet<RecomputeModule> modules_;
  std::vector<bool> repeated_;
  std::vector<bool> dropped_;  // by operand
};

/// Does a forward operation that is not repeated read the operand? Then it stays saved for the
/// backward of that operation.
bool feeds_others(const Block& forward, std::string_view operand, const Repetition& which) {
  for (std::size_t i = 0; i < forward.operations.size(); ++i) {
    if (which.repeats(i)) continue;
    for (const OperandId id : forward.operations[i].reads) {
      if (forward.operands[id].name == operand && !which.drops(id)) return true;
    }
  }
  return false;
}

/// Sets the roles of operands in backward: what backward remakes is a temporary, unless an
/// operation that is not repeated needs it saved.
void settle_roles(const Block& forward, Block& backward, const std::vector<Operation>& again,
                  const Repetition& which) {
  for (const Operation& op : again) {
    for (const OperandId id : op.writes) {
      Operand& written = backward.operands[id];
      const bool made = written.role == Role::saved || written.role == Role::output;
      if (made && !feeds_others(forward, written.name, which)) written.role = Role::temporary;
    }
  }
}

/// Saves what repeated operations read but do not remake: forward's input, and that of which only
/// copies in few bits were saved until now.
void keep_what_is_read(Block& forward, Block& backward, const Repetition& which) {
  std::vector<bool> made(forward.operands.size(), false);
  for (std::size_t i = 0; i < forward.operations.size(); ++i) {
    if (!which.repeats(i)) continue;
    for (const OperandId id : forward.operations[i].reads) {
      Operand& read = forward.operands[id];
      if (made[id] || (read.role != Role::temporary && read.role != Role::input)) continue;
      if (read.role == Role::temporary) read.role = Role::saved;
      backward.operands[backward.add(read)].role = Role::saved;
    }
    for (const OperandId id : forward.operations[i].writes) made[id] = true;
  }
}

void recompute_block(Block& forward, Block& backward, const Repetition& which) {
  keep_what_is_read(forward, backward, which);
  std::vector<Operation> again;
  for (std::size_t i = 0; i < forward.operations.size(); ++i) {
    if (!which.repeats(i)) continue;
    Operation copy = forward.operations[i];
    copy.pass = Pass::recompute;
    copy.name += ".again";
    Operation& once = forward.operations[i];
    if (once.sequence().leaves_keys) {
      once.mutable_sequence().leaves_keys = false;  // recomputation starts from its own keys
    }
    move_operands(copy, [&](OperandId id) { return backward.add(forward.operands[id]); });
    again.push_back(std::move(copy));
  }
  settle_roles(forward, backward, again, which);
  backward.operations.insert(backward.operations.begin(), again.begin(), again.end());
  drop_unsaved(forward, backward);
  link(backward);
}

}  // namespace

Program insert_recompute(Program program, const Plan& plan) {
  for (const LayerKind& kind : program.kinds) {
    if (!kind.recomputes && !kind.recomputes_elsewhere) continue;
    Block& forward = program.blocks[kind.forward];
    const bool all = kind.recomputes && plan.recompute.kind == Recompute::full;
    const Repetition which{forward, all,
                           kind.recomputes ? plan.recompute.modules : plan.recompute.elsewhere};
    recompute_block(forward, program.blocks[kind.backward], which);
  }
  return program;
}

}  // namespace orrery::models
