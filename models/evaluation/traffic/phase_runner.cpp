#include <algorithm>

#include "models/evaluation/traffic/sweep_state.hpp"

namespace orrery::models::traffic {

PhaseRunner::PhaseRunner(const PricedProgram& priced, const std::vector<double>& speeds)
    : program_{*priced.program} {
  for (const double speed : speeds) {
    const PricedProgram there = speed == 1 ? priced : at_speed(priced, speed);
    maps_.emplace_back(there);
    std::vector<ChainBlock>& blocks = blocks_.emplace_back();
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) blocks.emplace_back(there, b);
  }
  unit_maps_.resize(speeds.size());
  for (const Phase& phase : program_.phases) {
    bool meets = false, waits = false;
    std::int64_t launches = 0;
    for (const Invocation& run : phase.invocations) {
      if (run.count <= 0) continue;
      for (const ChainBlock::Step& step : blocks_[0][run.block].steps) {
        meets = meets || step.meets;
        waits = waits || step.host_waits || step.queue == state_host;
        launches += step.launch * run.count;
      }
    }
    meets_.push_back(meets);
    host_waits_.push_back(waits);
    launches_.push_back(launches);
  }
}

void PhaseRunner::run_together(std::uint32_t phase, const std::vector<RankTrack*>& members) {
  ends_.resize(std::max(ends_.size(), members.size()));
  for (RankTrack* member : members) member->inside_times.phases.push_back(member->device_at);
  for (const Invocation& run : program_.phases[phase].invocations) {
    for (std::int64_t i = 0; i < run.count; ++i) run_block_together(run.block, members);
  }
}

Chain<NumberTime> PhaseRunner::run_unit(std::uint32_t phase,
                                        const std::vector<RankTrack*>& members) {
  std::unique_ptr<UnitMaps>& maps = unit_maps_[members[0]->speed];
  if (!maps) maps = std::make_unique<UnitMaps>(program_, blocks_[members[0]->speed]);
  Chain<NumberTime> latest = members[0]->state;
  states_.clear();
  for (RankTrack* member : members) {
    for (int i = 0; i < chain_states; ++i) latest[i].raise(member->state[i]);
    states_.push_back(&member->state);
  }
  maps->run(phase, latest, states_);
  return latest;
}

void PhaseRunner::run_block_together(std::uint32_t block, const std::vector<RankTrack*>& members) {
  std::vector<BlockRun<NumberTime>> runs;
  for (std::size_t m = 0; m < members.size(); ++m) {
    runs.emplace_back(blocks_[members[m]->speed][block], members[m]->state, ends_[m]);
  }
  std::vector<NumberTime> each(members.size());
  const std::vector<ChainBlock::Step>& steps = blocks_[0][block].steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    NumberTime last{never};
    for (std::size_t m = 0; m < runs.size(); ++m) {
      each[m] = runs[m].start(i);
      last.raise(each[m]);
    }
    for (std::size_t m = 0; m < runs.size(); ++m) {
      const auto note = [&](std::size_t, NumberTime, NumberTime start, NumberTime end) {
        if (!steps[i].collective) return;
        members[m]->inside_times.starts.push_back(Time{start.value});
        members[m]->inside_times.ends.push_back(Time{end.value});
      };
      runs[m].end(i, steps[i].meets ? last : each[m], note);
    }
  }
  for (BlockRun<NumberTime>& run : runs) run.finish();
}

}  // namespace orrery::models::traffic
