#include "models/evaluation/traffic/block_collectives.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"

namespace orrery::models::traffic {

namespace {

bool has_group(const Program& program, const Operation& op) {
  return op.kind == OpKind::collective &&
         program.mesh.degree(program.communicators.at(op.communicator()).axes) > 1;
}

std::uint32_t kind_of(BlockCollectiveKinds& kinds, const Operation& op,
                      const PricedOperation& price) {
  const FlowShape shape{price.pattern, price.flows,
                        price.fluid > Time{} ? wire_of(price.links).share : 0};
  const auto same = [&](const BlockCollectiveKind& each) {
    return each.communicator == op.communicator() && each.queue == op.queue &&
           each.shape.pattern == shape.pattern && each.shape.flows == shape.flows;
  };
  auto at = std::ranges::find_if(kinds.all, same);
  if (at == kinds.all.end()) at = kinds.all.insert(at, {op.communicator(), op.queue, shape});
  at->shape.share = std::max(at->shape.share, shape.share);
  return static_cast<std::uint32_t>(at - kinds.all.begin());
}

/// Kinds of the blocks that a class runs, each once.
void add_used(const Program& program, std::uint32_t rank_class, BlockCollectiveKinds& kinds) {
  std::vector<char> seen(kinds.all.size(), 0);
  for (const Instruction& each : program.classes[rank_class].instructions) {
    if (!runs_phase(each)) continue;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const std::uint32_t kind : kinds.of_operations.of_block[run.block]) {
        if (kind == no_kind || seen[kind]++ != 0) continue;
        kinds.used.emplace_back(rank_class, kind);
      }
    }
  }
}

bool has_any(const Program& program, const Block& block) {
  return std::ranges::any_of(block.operations,
                             [&](const Operation& op) { return has_group(program, op); });
}

/// Does a block have a collective that waits for none of its kernels?
bool is_eager(const Program& program, const Block& block) {
  std::vector<char> later(block.operations.size(), 0);  // by operation: it waits for some kernel
  std::vector<char> queue_later(lane_count, 0);
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    char& queue = queue_later[static_cast<std::size_t>(op.queue)];
    bool after = op.queue == Lane::compute || queue != 0;
    for (const OpId each : op.after) after = after || (each != block_input && later[each] != 0);
    if (!after && has_group(program, op)) return true;
    later[i] = queue = after ? 1 : 0;
  }
  return false;
}

/// Whether a phase has a collective, and whether its first block lets one begin at once.
struct PhaseKind {
  bool any = false, eager = false;
};

PhaseKind kind_of_phase(const Program& program, const Phase& phase) {
  PhaseKind kind;
  bool first = true;
  for (const Invocation& run : phase.invocations) {
    if (run.count <= 0) continue;
    kind.any = kind.any || has_any(program, program.blocks[run.block]);
    kind.eager = kind.eager || (first && is_eager(program, program.blocks[run.block]));
    first = false;
  }
  return kind;
}

}  // namespace

BlockCollectiveKinds block_collective_kinds(const PricedProgram& priced) {
  const Program& program = *priced.program;
  BlockCollectiveKinds kinds;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const std::vector<Operation>& operations = program.blocks[b].operations;
    std::vector<std::uint32_t>& of = kinds.of_operations.of_block.emplace_back();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (!has_group(program, operations[i])) continue;
      of.resize(operations.size(), no_kind);
      of[i] = kind_of(kinds, operations[i], priced.blocks[b][i]);
    }
  }
  kinds.of_operations.kinds = kinds.all.size();
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) add_used(program, c, kinds);
  return kinds;
}

std::optional<std::string> unordered_block_collectives(const Program& program) {
  std::optional<Lane> queue;
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (!has_group(program, op)) continue;
      if (queue && *queue != op.queue) return "blocks have collectives on two queues";
      queue = op.queue;
    }
  }
  std::vector<PhaseKind> kinds;
  for (const Phase& phase : program.phases) kinds.push_back(kind_of_phase(program, phase));
  for (const RankClass& each : program.classes) {
    bool without = false;
    for (const Instruction& at : each.instructions) {
      if (!runs_phase(at)) continue;
      if (without && kinds[at.target].eager) {
        return "collectives inside blocks may begin before an earlier phase has ended";
      }
      without = without || !kinds[at.target].any;
    }
  }
  return std::nullopt;
}

bool block_collectives_differ(const PricedProgram& priced, const NetworkSite& site) {
  const Program& program = *priced.program;
  const auto tensor = static_cast<std::size_t>(program.mesh.degree(MeshAxis::tensor));
  bool crosses = false;
  for (std::size_t r = 0; r < site.placement.devices.size() && !crosses; ++r) {
    crosses = site.placement.node(r) != site.placement.node(r - r % tensor);
  }
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (!has_group(program, op)) continue;
      const bool tensor_group = program.role_of(op.communicator()) == CommunicatorRole::tensor;
      if (crosses || !tensor_group) return true;
    }
  }
  return false;
}

}  // namespace orrery::models::traffic
