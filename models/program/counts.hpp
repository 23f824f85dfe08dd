#pragma once
// How often one rank of a class runs each phase and takes part in each transfer and collective.
// Any sum over its instruction list follows from these counts.

#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

struct TargetCounts {
  std::vector<std::int64_t> phases;           // by index in Program::phases
  std::vector<std::int64_t> sends, receives;  // by index in Program::channels
  std::vector<std::int64_t> collectives;      // by index in Program::collectives
};

TargetCounts counts_of(const Program& program, std::uint32_t rank_class);
/// By rank class.
std::vector<TargetCounts> counts_of(const Program& program);
/// How often each block runs on a rank of the class, by index in Program::blocks.
std::vector<std::int64_t> block_runs(const Program& program, std::uint32_t rank_class);

}  // namespace orrery::models
