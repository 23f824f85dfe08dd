#pragma once
// Makes the Program's communicators as groups of a fabric, and connects members that send to each
// other.

#include <vector>

#include "executor/fabric/fabric.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// The group of one communicator that a rank belongs to.
struct Group {
  GroupId id = 0;
  int index = -1;            // this rank's index in `members`; -1: it is no member
  std::vector<int> members;  // world ranks; a lone member has no group in the fabric

  bool alone() const { return members.size() < 2; }
};

/// This rank's group of each communicator, in the Program's order. Collective over the world.
std::vector<Group> make_groups(const models::Program& program, Fabric& fabric);

/// "comm:tp of ranks 0 1"
std::string text_of(const models::Communicator& communicator, const Group& group);

}  // namespace orrery::executor
