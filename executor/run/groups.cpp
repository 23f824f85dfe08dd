#include "executor/run/groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/lowering/lower.hpp"

namespace orrery::executor {

namespace {

using models::Communicator;
using models::Mesh;
using models::MeshAxis;

/// Where one axis of a group begins and ends.
std::vector<std::int64_t> along(const Communicator& communicator, MeshAxis axis,
                                std::int64_t extent, std::int64_t own) {
  const bool spans = std::find(communicator.spans.begin(), communicator.spans.end(), axis) !=
                     communicator.spans.end();
  if (!spans) return {own};
  if (axis == MeshAxis::pipeline && !communicator.stages.empty()) {
    std::vector<std::int64_t> stages = communicator.stages;
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    return stages;
  }
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < extent; ++i) all.push_back(i);
  return all;
}

/// The group of a communicator that the rank at these coordinates belongs to, or would.
std::vector<int> members_of(const Communicator& communicator, const Mesh& mesh, std::int64_t rank) {
  std::vector<int> members;
  for (const std::int64_t p :
       along(communicator, MeshAxis::pipeline, mesh.pipeline, mesh.stage_of(rank))) {
    for (const std::int64_t d :
         along(communicator, MeshAxis::data, mesh.data, mesh.data_of(rank))) {
      for (const std::int64_t t :
           along(communicator, MeshAxis::tensor, mesh.tensor, mesh.tensor_of(rank))) {
        members.push_back(static_cast<int>(mesh.rank(t, d, p)));
      }
    }
  }
  return members;
}

/// The ways that something is sent on in a group that may be a pipe.
void connect_channels(const models::Program& program, std::size_t communicator, GroupId group,
                      Fabric& fabric) {
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const models::Channel& channel = program.channels[c];
    if (communicator != (channel.forward ? models::forward_pipe : models::backward_pipe)) continue;
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
      const std::vector<int> members = members_of(communicator, program.mesh, rank);
      if (std::find(made.begin(), made.end(), members) != made.end()) continue;
      made.push_back(members);
      const GroupId id = members.size() < 2 ? 0 : fabric.make_group(members);
      if (members.size() > 1) connect_channels(program, groups.size(), id, fabric);
      const auto me = std::find(members.begin(), members.end(), fabric.rank());
      if (me != members.end()) own = {id, static_cast<int>(me - members.begin()), members};
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
