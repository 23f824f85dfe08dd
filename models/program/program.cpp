#include "models/program/program.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models {

std::uint16_t Program::communicator(CommunicatorRole role) const {
  const auto found = std::ranges::find(communicators, role, &Communicator::role);
  ensure(found != communicators.end(), "a Program lacks a communicator");
  return static_cast<std::uint16_t>(found - communicators.begin());
}

BlockUse Program::use_of(std::uint32_t block) const {
  for (const LayerKind& each : kinds) {
    if (block == each.forward || block == each.forward_unpaired) return {&each, Direction::forward};
    if (block == each.backward || block == each.backward_unpaired) {
      return {&each, Direction::backward};
    }
    if (each.weight_gradient == block) return {&each, Direction::weight_gradient};
  }
  return {};
}

std::uint32_t Program::add_phase(Block block) {
  std::string name = block.name;
  return appended(phases, {std::move(name), {{appended(blocks, std::move(block)), -1, 1}}});
}

bool Program::reduces_experts() const {
  return mesh.degree(MeshAxis::expert_data) > 1 &&
         std::ranges::any_of(kinds,
                             [](const LayerKind& each) { return each.expert_parameters > 0; });
}

bool Program::keeps_output_gradient(const LayerKind& kind) const {
  if (!kind.weight_gradient) return false;
  const std::vector<Operand>& operands = blocks[*kind.weight_gradient].operands;
  return std::ranges::any_of(operands, [&](const Operand& each) {
    if (each.role != Role::delayed) return false;
    const auto made = blocks[kind.backward].find(each.name);
    return made && blocks[kind.backward].operands[*made].role == Role::input;
  });
}

bool Program::keeps_output_gradient(const Chunk& chunk) const {
  const std::vector<Invocation>& runs = phases[chunk.backward].invocations;
  if (runs.empty()) return false;
  const LayerKind* const first = use_of(runs.front().block).kind;
  return first != nullptr && keeps_output_gradient(*first);
}

std::vector<const Operand*> Program::carried() const {
  std::vector<const Operand*> found;
  for (const Block& block : blocks) {
    for (const Operand& each : block.operands) {
      const auto same = [&](const Operand* other) { return other->name == each.name; };
      if (each.role == Role::carried && std::ranges::none_of(found, same)) found.push_back(&each);
    }
  }
  return found;
}

const LayerKind& Program::kind(ModelPart part) const {
  const auto found = std::ranges::find(kinds, part, &LayerKind::part);
  ensure(found != kinds.end(), "a Program lacks a part of the model");
  return *found;
}

LayerRange Program::layers_of(const JointCollective& joint) const {
  LayerRange found;
  for (const Unit& each : units_of(joint)) {
    if (each.layer < 0) continue;
    if (found.count == 0) found.first = each.layer;
    found.count = each.layer - found.first + 1;
  }
  return found;
}

bool Program::holds(const JointCollective& joint, ModelPart part) const {
  for (const Unit& each : units_of(joint)) {
    for (const std::uint32_t kind : each.kinds) {
      if (kinds[kind].part == part) return true;
    }
  }
  return false;
}

}  // namespace orrery::models
