#include "executor/run/blocks/instruction_limits.hpp"

#include <algorithm>
#include <cmath>

#include "models/program/walk.hpp"

namespace orrery::executor {

namespace {

constexpr double times_predicted = 20;
constexpr double longest_limit = 1e12;  // milliseconds

Time work_of(const models::PricedProgram& priced, const models::Phase& phase) {
  Time all{};
  for (const models::Invocation& run : phase.invocations) {
    Time once{};
    for (const models::PricedOperation& each : priced.blocks[run.block]) {
      once = once + each.launch + each.occupied();
    }
    all = all + Time{once.count() * run.count};
  }
  return all;
}

}  // namespace

std::vector<Time> predicted_work(const models::PricedProgram& priced, std::int64_t stage) {
  const models::Program& program = *priced.program;
  std::vector<Time> phases;
  for (const models::Phase& each : program.phases) phases.push_back(work_of(priced, each));
  std::vector<Time> all;
  const auto transfer = [&](models::Token, const models::Instruction& each) {
    all.push_back(priced.channels[each.target]);
  };
  const auto phase = [&](models::Token, const models::Instruction& each) {
    all.push_back(phases[each.target]);
  };
  const auto joint = [&](models::Token, const models::Instruction& each) {
    all.push_back(priced.collectives[each.target].occupied());
  };
  models::walk(program, static_cast<std::uint32_t>(stage),
               models::Cases{phase, transfer, transfer, joint});
  return all;
}

void InstructionLimits::measured(Time step) {
  if (step_.count() <= 0) return;
  slower_ = static_cast<double>(step.count()) / static_cast<double>(step_.count());
}

std::chrono::milliseconds InstructionLimits::at(const Progress& progress) const {
  constexpr double picoseconds_per_millisecond = 1e9;
  const bool own = progress.works && progress.instruction < predicted_.size();
  const Time predicted = own ? predicted_[progress.instruction] : step_;
  const double slower = slower_;
  const double limit = times_predicted * static_cast<double>(predicted.count()) /
                       picoseconds_per_millisecond * std::max(1.0, slower);
  const auto least = slower > 0 ? bounds_.least : std::max(bounds_.least, bounds_.first);
  return std::max(least, std::chrono::milliseconds{std::llround(std::min(limit, longest_limit))});
}

}  // namespace orrery::executor
