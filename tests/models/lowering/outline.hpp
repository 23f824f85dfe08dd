#pragma once
// A class's list in so few letters that a test can spell all of it.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Forward, Backward, Weight gradient, Reduce, Norm, Optimizer, Gather, Compress, Unshard of the
/// first class; `<3` awaits what stands at i3, `*` frees the weights that it was given.
inline std::string outline(const Program& program) {
  const std::vector<Instruction>& list = program.classes[0].instructions;
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& each = list[i];
    text += fmt::format("{}{}", i > 0 ? " " : "", "FBW??R?NOGCU"[static_cast<int>(each.op)]);
    if (each.awaits != no_token) text += fmt::format("<{}", each.awaits);
    if ((each.frees & bit(slot_weights)) != 0) text += "*";
  }
  return text;
}

/// What the instruction at `i` of the first class does together with others.
inline const JointCollective& joint_at(const Program& program, std::size_t i) {
  return program.collectives[program.classes[0].instructions[i].target];
}

}  // namespace orrery::models
