#include "models/program/check.hpp"

#include <fmt/format.h>

#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// The part of `place` that follows the opcode.
struct PlaceDetail {
  const Program& program;

  std::string compute(Token, const Instruction& each) const {
    return fmt::format(" c{} mb{}", each.chunk, each.micro_batch);
  }
  std::string phase(Token, const Instruction&) const { return {}; }
  std::string send(Token i, const Instruction& each) const { return compute(i, each); }
  std::string receive(Token i, const Instruction& each) const { return compute(i, each); }
  std::string joint(Token, const Instruction& each) const {
    if (each.target >= program.collectives.size()) return {};
    return fmt::format(" '{}'", program.collectives[each.target].name);
  }
};

/// Checks one class: every target is in range, every chunk belongs to the class's stage.
class TargetCheck {
 public:
  TargetCheck(const Program& program, std::uint32_t c) : program_{program}, class_{c} {}

  void phase(Token i, const Instruction& each) const { exists(i, each, program_.phases.size()); }
  void compute(Token i, const Instruction& each) const {
    phase(i, each);
    at_home(i, each);
  }
  void send(Token i, const Instruction& each) const {
    exists(i, each, program_.channels.size());
    at_home(i, each);
  }
  void receive(Token i, const Instruction& each) const { send(i, each); }
  void joint(Token i, const Instruction& each) const {
    exists(i, each, program_.collectives.size());
  }

 private:
  void exists(Token i, const Instruction& each, std::size_t choices) const {
    if (each.target < choices) return;
    throw ContractError{
        fmt::format("{}: there is no target {}", place(program_, class_, i), each.target)};
  }
  void at_home(Token i, const Instruction& each) const {
    const bool known = each.chunk < program_.chunks.size();
    if (known && program_.chunks[each.chunk].stage == program_.classes[class_].stage) return;
    throw ContractError{
        fmt::format("{}: the chunk is not of this stage", place(program_, class_, i))};
  }

  const Program& program_;
  std::uint32_t class_;
};

}  // namespace

std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction) {
  const RankClass& ranks = program.classes[rank_class];
  const Instruction& each = ranks.instructions[instruction];
  return fmt::format("stage {} i{} {}{}", ranks.stage, instruction, name(each.op),
                     visit(0, each, PlaceDetail{program}));
}

void check_targets(const Program& program) {
  for (const Phase& phase : program.phases) {
    for (const Invocation& run : phase.invocations) {
      if (run.block < program.blocks.size()) continue;
      throw ContractError{fmt::format("phase {} runs block {}, there are {}", phase.name, run.block,
                                      program.blocks.size())};
    }
  }
  for (const JointCollective& each : program.collectives) {
    if (each.communicator < program.communicators.size()) continue;
    throw ContractError{fmt::format("collective '{}' has no communicator", each.name)};
  }
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    walk(program, c, TargetCheck{program, c});
  }
}

void check(const Program& program) {
  check_blocks(program);
  check_targets(program);
  check_coverage(program);
  check_lists(program);
  check_matching(program);
  check_reductions(program);
}

}  // namespace orrery::models
