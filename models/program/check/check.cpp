#include "models/program/check/check.hpp"

#include <fmt/format.h>

#include <utility>

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

/// Refuses an index that `what` names, if there are not so many.
template <class... Named>
void within(std::uint64_t index, std::size_t count, fmt::format_string<Named...> what,
            Named&&... named) {
  if (index < count) return;
  throw ContractError{fmt::format("{} {}, there are {}",
                                  fmt::format(what, std::forward<Named>(named)...),
                                  static_cast<std::int64_t>(index), count)};
}

/// Checks the indices by which the parts of a Program name each other, but for instructions.
class ReferenceCheck {
 public:
  explicit ReferenceCheck(const Program& program) : program_{program} {}

  void run() const {
    for (const std::uint32_t kind : program_.kind_of_layer) {
      within(kind, program_.kinds.size(), "a layer is of kind");
    }
    for (const Phase& each : program_.phases) phase(each);
    for (std::size_t c = 0; c < program_.chunks.size(); ++c) chunk(c);
    for (const Unit& each : program_.units) unit(each);
    for (std::size_t c = 0; c < program_.channels.size(); ++c) channel(c);
    for (const JointCollective& each : program_.collectives) collective(each);
    for (const RankClass& ranks : program_.classes) {
      for (const std::uint32_t each : ranks.chunks) {
        within(each, program_.chunks.size(), "stage {} holds chunk", ranks.stage);
      }
    }
  }

 private:
  std::size_t layers() const { return program_.kind_of_layer.size(); }

  /// Backward goes down from its first layer.
  void phase(const Phase& phase) const {
    for (const Invocation& run : phase.invocations) {
      within(run.block, program_.blocks.size(), "phase {} runs block", phase.name);
      const Direction way = program_.use_of(run.block).direction;
      const bool descends = way == Direction::backward || way == Direction::weight_gradient;
      if (run.first_layer < 0 || !descends) continue;
      for (const std::int64_t layer : {run.first_layer, run.first_layer - run.count + 1}) {
        within(static_cast<std::uint64_t>(layer), layers(), "phase {} runs layer", phase.name);
      }
    }
  }

  void chunk(std::size_t c) const {
    const Chunk& each = program_.chunks[c];
    for (const std::uint32_t phase :
         {each.forward, each.backward, each.weight_gradient.value_or(each.backward)}) {
      within(phase, program_.phases.size(), "c{} runs phase", c);
    }
    if (each.layers <= 0) return;
    for (const std::int64_t layer : {each.first_layer, each.first_layer + each.layers - 1}) {
      within(static_cast<std::uint64_t>(layer), layers(), "c{} has layer", c);
    }
  }

  void unit(const Unit& unit) const {
    for (const std::uint32_t kind : unit.kinds) {
      within(kind, program_.kinds.size(), "unit '{}' is of kind", unit.name);
    }
    if (unit.layer < 0) return;
    within(static_cast<std::uint64_t>(unit.layer), layers(), "unit '{}' is of layer", unit.name);
  }

  void channel(std::size_t c) const {
    const Channel& each = program_.channels[c];
    for (const std::uint32_t end : {each.from, each.to}) {
      within(end, program_.classes.size(), "channel {} joins rank class", c);
    }
    within(each.communicator, program_.communicators.size(), "channel {} has communicator", c);
  }

  void collective(const JointCollective& joint) const {
    if (joint.communicator >= program_.communicators.size()) {
      throw ContractError{fmt::format("collective '{}' has no communicator", joint.name)};
    }
    for (const std::uint32_t each : joint.classes) {
      within(each, program_.classes.size(), "collective '{}' joins rank class", joint.name);
    }
    if (joint.units == 0) return;
    within(std::uint64_t{joint.first_unit} + joint.units - 1, program_.units.size(),
           "collective '{}' has unit", joint.name);
  }

  const Program& program_;
};

/// Checks one class: every target is in range, every chunk belongs to the class's stage.
class TargetCheck : public ClassCheck {
 public:
  TargetCheck(const Program& program, std::uint32_t c)
      : ClassCheck{program, c}, own_(program.chunks.size(), false) {
    for (const std::uint32_t chunk : ranks_.chunks) {
      const Chunk& each = program.chunks[chunk];
      const bool named = each.place < ranks_.chunks.size() && ranks_.chunks[each.place] == chunk;
      own_[chunk] = named && each.stage == ranks_.stage;
    }
  }

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
  void reduce_gradient(Token i, const Instruction& each) const { of_units(i, each); }
  void unshard(Token i, const Instruction& each) const { of_units(i, each); }

 private:
  /// Every part of a compressed bucket names its first unit, one of them all.
  void of_units(Token i, const Instruction& each) const {
    joint(i, each);
    const JointCollective& joint = program_.collectives[each.target];
    within(joint.first_unit, program_.units.size(), "collective '{}' has unit", joint.name);
  }
  void exists(Token i, const Instruction& each, std::size_t choices) const {
    if (each.target < choices) return;
    refuse(i, fmt::format("there is no target {}", each.target));
  }
  void at_home(Token i, const Instruction& each) const {
    if (each.chunk >= own_.size() || !own_[each.chunk]) {
      refuse(i, "the chunk is not of this stage");
    }
  }

  std::vector<char> own_;  // by chunk: is it of this stage, at the place that it names?
};

}  // namespace

std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction) {
  const RankClass& ranks = program.classes[rank_class];
  const Instruction& each = ranks.instructions[instruction];
  return fmt::format("stage {} i{} {}{}", ranks.stage, instruction, name(each.op),
                     visit(0, each, PlaceDetail{program}));
}

void ClassCheck::refuse(Token i, std::string_view problem) const {
  throw ContractError{fmt::format("{}: {}", place(program_, class_, i), problem)};
}

void check_targets(const Program& program) {
  ReferenceCheck{program}.run();
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
