#include "models/program/counts.hpp"

#include "models/program/walk.hpp"

namespace orrery::models {

TargetCounts counts_of(const Program& program, std::uint32_t rank_class) {
  TargetCounts counts;
  counts.phases.resize(program.phases.size());
  counts.sends.resize(program.channels.size());
  counts.receives.resize(program.channels.size());
  counts.collectives.resize(program.collectives.size());
  const auto in = [](std::vector<std::int64_t>& of) {
    return [&of](Token, const Instruction& each) { ++of[each.target]; };
  };
  walk(program, rank_class,
       Cases{in(counts.phases), in(counts.sends), in(counts.receives), in(counts.collectives)});
  return counts;
}

std::vector<TargetCounts> counts_of(const Program& program) {
  std::vector<TargetCounts> classes;
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    classes.push_back(counts_of(program, c));
  }
  return classes;
}

std::vector<std::int64_t> block_runs(const Program& program, std::uint32_t rank_class) {
  const std::vector<std::int64_t> phases = counts_of(program, rank_class).phases;
  std::vector<std::int64_t> runs(program.blocks.size(), 0);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    for (const Invocation& run : program.phases[p].invocations) {
      runs[run.block] += phases[p] * run.count;
    }
  }
  return runs;
}

}  // namespace orrery::models
