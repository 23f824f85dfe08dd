#include <fmt/format.h>

#include "models/lowering/lower.hpp"
#include "models/program/check.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Follows one class's gathered weights.
class ShardCheck {
 public:
  ShardCheck(const Program& program, std::uint32_t c)
      : program_{program},
        ranks_{program.classes[c]},
        class_{c},
        reached_(program.collectives.size(), nothing),
        freed_(program.collectives.size(), nothing),
        held_(ranks_.types.size()) {}

  void run() {
    for (at_ = 0; at_ < ranks_.instructions.size(); ++at_) {
      const Instruction& each = ranks_.instructions[at_];
      if (is_joint(each.op)) reached_[each.target] = at_;
      if (each.op == Opcode::unshard) fill(each);
      if (runs_phase(each.op)) run(each);
    }
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) {
      const Instruction& each = ranks_.instructions[i];
      if (each.op != Opcode::unshard || freed_[each.target] != nothing) continue;
      throw ContractError{
          fmt::format("{}: gathers weights that are never freed", place(program_, class_, i))};
    }
  }

 private:
  static constexpr std::size_t nothing = ~std::size_t{0};

  [[noreturn]] void refuse(const std::string& problem) const {
    throw ContractError{fmt::format("{}: {}", place(program_, class_, at_), problem)};
  }
  bool gathers() const { return program_.plan.zero == Zero::three && program_.plan.data > 1; }

  /// The buffer that a gather fills is nobody's.
  void fill(const Instruction& each) {
    const std::uint16_t type = program_.collectives[each.target].buffer;
    const std::uint32_t index = each.bindings[slot_filled];
    if (type >= held_.size() || index == no_binding) refuse("fills no buffer");
    std::vector<std::uint32_t>& all = held_[type];
    if (index >= all.size()) all.resize(index + 1, no_binding);
    if (all[index] != no_binding) {
      refuse(fmt::format("{}[{}] still holds '{}'", ranks_.types[type].name, index,
                         program_.collectives[all[index]].name));
    }
    all[index] = each.target;
  }

  void run(const Instruction& each) {
    const bool runs_model = each.op == Opcode::forward || each.op == Opcode::backward;
    if (each.awaits != no_binding &&
        (each.awaits >= reached_.size() || reached_[each.awaits] == nothing)) {
      refuse("awaits a collective that is not earlier in its list");
    }
    if (gathers() && runs_model) has_weights(each);
    if ((each.frees & (1U << slot_weights)) != 0) free(each);
  }

  void has_weights(const Instruction& each) const {
    for (const Invocation& run : program_.phases[each.target].invocations) {
      const bool descends = run.block == layer_backward;
      for (std::int64_t i = 0; i < run.count; ++i) {
        if (holds(each.awaits, run, run.first_layer + (descends ? -i : i))) continue;
        const std::string what =
            run.first_layer < 0 ? program_.blocks[run.block].name
                                : fmt::format("layer {}", run.first_layer + (descends ? -i : i));
        refuse(what + " runs without its weights");
      }
    }
  }

  bool holds(std::uint32_t id, const Invocation& run, std::int64_t layer) const {
    if (id == no_binding || freed_[id] != nothing) return false;
    if (ranks_.instructions[reached_[id]].op != Opcode::unshard) return false;
    const JointCollective& gather = program_.collectives[id];
    const bool embedding = run.block == embedding_forward || run.block == embedding_backward;
    if (run.first_layer < 0) return (gather.ends & (embedding ? end_embedding : end_head)) != 0;
    return layer >= gather.first_layer && layer < gather.first_layer + gather.layers;
  }

  void free(const Instruction& each) {
    if (each.awaits == no_binding) refuse("frees weights that it does not await");
    const std::size_t filled = reached_[each.awaits];
    if (ranks_.instructions[filled].op != Opcode::unshard) refuse("frees what is no gather's");
    std::size_t& freed = freed_[each.awaits];
    if (freed != nothing) {
      refuse(fmt::format("frees weights that were freed at {}", place(program_, class_, freed)));
    }
    freed = at_;
    const JointCollective& gather = program_.collectives[each.awaits];
    held_[gather.buffer][ranks_.instructions[filled].bindings[slot_filled]] = no_binding;
  }

  const Program& program_;
  const RankClass& ranks_;
  std::uint32_t class_;
  std::vector<std::size_t> reached_, freed_;      // where in the list, by joint collective
  std::vector<std::vector<std::uint32_t>> held_;  // whose weights, by type and index
  std::size_t at_ = 0;
};

}  // namespace

void check_shards(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ShardCheck{program, c}.run();
}

}  // namespace orrery::models
