#include "executor/run/reducer/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace orrery::executor {

namespace {

using models::Communicator;

std::vector<int> members_of(const models::Mesh& mesh, const Communicator& communicator,
                            std::int64_t rank) {
  const auto ranks = mesh.members(rank, communicator.axes, communicator.stages);
  return {ranks.begin(), ranks.end()};
}

/// Connects the ranks that send each other keys and values (ring attention).
void connect_ring(const models::Program& program, std::size_t communicator, GroupId group,
                  int members, Fabric& fabric) {
  std::set<std::int64_t> ahead;
  for (const models::Block& block : program.blocks) {
    for (const models::Operation& op : block.operations) {
      const bool passes = op.kind == models::OpKind::collective &&
                          op.collective() == models::Collective::send_receive;
      if (passes && op.communicator() == communicator) ahead.insert(op.sequence().ahead);
    }
  }
  for (const std::int64_t by : ahead) {
    for (int from = 0; from < members; ++from) {
      fabric.connect(group, from, static_cast<int>((from + by + members) % members));
    }
  }
}

/// Connects the neighbouring stages that send to each other, if the group is a pipeline's.
void connect_channels(const models::Program& program, std::size_t communicator, GroupId group,
                      Fabric& fabric) {
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const models::Channel& channel = program.channels[c];
    if (communicator != channel.communicator || channel.from == channel.to) continue;
    const std::vector<models::Instruction>& list = program.classes[channel.from].instructions;
    const bool used = std::any_of(list.begin(), list.end(), [&](const models::Instruction& each) {
      return each.op == models::Opcode::send && each.target == c;
    });
    if (used) fabric.connect(group, static_cast<int>(channel.from), static_cast<int>(channel.to));
  }
}

}  // namespace

std::vector<Group> make_groups(const models::Program& program, Fabric& fabric) {
  std::vector<Group> groups;
  for (const Communicator& communicator : program.communicators) {
    Group own;
    std::vector<std::vector<int>> made;
    for (std::int64_t rank = 0; rank < program.mesh.ranks(); ++rank) {
      const std::vector<int> members = members_of(program.mesh, communicator, rank);
      if (std::find(made.begin(), made.end(), members) != made.end()) continue;
      made.push_back(members);
      const GroupId id = members.size() < 2 ? 0 : fabric.make_group(members);
      if (members.size() > 1) {
        connect_channels(program, groups.size(), id, fabric);
        connect_ring(program, groups.size(), id, static_cast<int>(members.size()), fabric);
      }
      const int me = index_in(members, fabric.rank());
      if (me >= 0) own = {id, me, members};
    }
    groups.push_back(std::move(own));
  }
  return groups;
}

std::string text_of(const Communicator& communicator, const Group& group) {
  std::string text = fmt::format("comm:{} of ranks", communicator.name);
  for (const int member : group.members) text += fmt::format(" {}", member);
  return text;
}

}  // namespace orrery::executor
