#pragma once
// How often one rank of a class runs each phase and takes part in each transfer and collective:
// what any sum over its list is made of.

#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

struct TargetCounts {
  std::vector<std::int64_t> phases;           // as Program::phases
  std::vector<std::int64_t> sends, receives;  // as Program::channels
  std::vector<std::int64_t> collectives;      // as Program::collectives
};

TargetCounts counts_of(const Program& program, std::uint32_t rank_class);

}  // namespace orrery::models
