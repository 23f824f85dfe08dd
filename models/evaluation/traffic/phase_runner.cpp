#include "models/evaluation/traffic/phase_runner.hpp"

#include <algorithm>

#include "models/evaluation/max_plus_map.hpp"

namespace orrery::models::traffic {

namespace {

/// A time as a function of the member's own state, and of the latest state of its group.
struct MemberTime {
  AffineTime own, met;

  void raise(const MemberTime& other) {
    own.raise(other.own);
    met.raise(other.met);
  }
  void advance(std::int64_t by) {
    own.advance(by);
    met.advance(by);
  }
  /// The same after a collective of the group: what depended on the own state depends on the
  /// latest.
  void meet() {
    met.raise(own);
    own = {};
  }
};

}  // namespace

struct TensorGroupMaps::Pair {
  MaxPlusMap own, met;

  static Pair identity() {
    Pair pair{MaxPlusMap::identity(), {}};
    for (auto& column : pair.met.columns) column.fill(never);
    return pair;
  }

  Pair then(const Pair& next) const {
    MaxPlusMap any = own;
    any.raise(met);
    Pair both{own.then(next.own), any.then(next.met)};
    both.met.raise(met.then(next.own));
    return both;
  }
};

TensorGroupMaps::Pair TensorGroupMaps::pair_of(const ChainBlock& block) {
  Chain<MemberTime> state;
  for (int i = 0; i < chain_states; ++i) state[i].own.coefficients[i] = 0;
  std::vector<MemberTime> ends;
  BlockRun<MemberTime> run{block, state, ends};
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    MemberTime start = run.start(i);
    if (block.steps[i].meets) start.meet();
    run.end(i, start, [](auto&&...) {});
  }
  run.finish();
  Chain<AffineTime> own, met;
  for (int i = 0; i < chain_states; ++i) {
    own[i] = state[i].own;
    met[i] = state[i].met;
  }
  return {MaxPlusMap::of(own), MaxPlusMap::of(met)};
}

/// Drops the entries that stay as they are and on which no other entry depends.
TensorGroupMaps::ReducedMap TensorGroupMaps::reduced(const Pair& pair) {
  ReducedMap map;
  const Pair none = Pair::identity();
  for (int i = 0; i < chain_states; ++i) {
    bool stays = true;
    for (int j = 0; j < chain_states; ++j) {
      for (const auto& [from, to] : {std::pair{i, j}, std::pair{j, i}}) {
        stays = stays && pair.own.columns[from][to] == none.own.columns[from][to] &&
                pair.met.columns[from][to] == never;
      }
    }
    if (!stays) map.states[map.size++] = static_cast<std::uint8_t>(i);
  }
  for (int j = 0; j < map.size; ++j) {
    for (int i = 0; i < map.size; ++i) {
      map.own[j][i] = pair.own.columns[map.states[j]][map.states[i]];
      map.met[j][i] = pair.met.columns[map.states[j]][map.states[i]];
    }
  }
  return map;
}

TensorGroupMaps::TensorGroupMaps(const Program& program, const std::vector<ChainBlock>& blocks) {
  std::vector<Pair> pairs;
  for (const ChainBlock& block : blocks) pairs.push_back(pair_of(block));
  map_of_phase_ =
      each_phase_map(program, pairs, [&](const Pair& all) { maps_.push_back(reduced(all)); });
}

void TensorGroupMaps::ReducedMap::run(const Chain<NumberTime>& latest, States members) const {
  std::array<std::int64_t, chain_states> together;
  together.fill(never);
  for (int j = 0; j < size; ++j) {
    const std::int64_t x = latest[states[j]].value;
    for (int i = 0; i < size; ++i) together[i] = std::max(together[i], met[j][i] + x);
  }
  for (Chain<NumberTime>* member : members) {
    std::array<std::int64_t, chain_states> out = together;
    for (int j = 0; j < size; ++j) {
      const std::int64_t x = (*member)[states[j]].value;
      for (int i = 0; i < size; ++i) out[i] = std::max(out[i], own[j][i] + x);
    }
    for (int i = 0; i < size; ++i) (*member)[states[i]].value = out[i];
  }
}

PhaseRunner::PhaseRunner(const PricedProgram& priced, const std::vector<double>& speeds)
    : program_{*priced.program} {
  for (const double speed : speeds) {
    const PricedProgram there = speed == 1 ? priced : at_speed(priced, speed);
    maps_.emplace_back(there);
    std::vector<ChainBlock>& blocks = blocks_.emplace_back();
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) blocks.emplace_back(there, b);
  }
  tensor_group_maps_.resize(speeds.size());
  for (const ChainBlock& block : blocks_[0]) {
    HostRun& own = host_of_block_.emplace_back();
    for (const ChainBlock::Step& step : block.steps) {
      own.waits = own.waits || step.host_waits || step.queue == state_host;
      own.launches += step.launch;
    }
  }
  for (const Phase& phase : program_.phases) {
    bool meets = false;
    std::vector<HostRun>& from = host_from_.emplace_back(phase.invocations.size() + 1);
    for (std::size_t i = phase.invocations.size(); i-- > 0;) {
      const Invocation& run = phase.invocations[i];
      from[i] = from[i + 1];
      if (run.count <= 0) continue;
      from[i].waits = from[i].waits || host_of_block_[run.block].waits;
      from[i].launches += host_of_block_[run.block].launches * run.count;
      for (const ChainBlock::Step& step : blocks_[0][run.block].steps) meets = meets || step.meets;
    }
    meets_.push_back(meets);
    host_waits_.push_back(from[0].waits);
    launches_.push_back(from[0].launches);
  }
}

std::optional<std::int64_t> PhaseRunner::launches_after(std::uint32_t phase, std::size_t invocation,
                                                        std::int64_t repeat) const {
  const Invocation& run = program_.phases[phase].invocations[invocation];
  const std::int64_t left = run.count - repeat - 1;
  const HostRun& own = host_of_block_[run.block];
  const HostRun& later = host_from_[phase][invocation + 1];
  if (later.waits || (left > 0 && own.waits)) return std::nullopt;
  return left * own.launches + later.launches;
}

void PhaseRunner::run_together(std::uint32_t phase, const std::vector<RankTrack*>& members) {
  ends_.resize(std::max(ends_.size(), members.size()));
  for (RankTrack* member : members) member->inside_times.phases.push_back(member->device_at);
  for (const Invocation& run : program_.phases[phase].invocations) {
    for (std::int64_t i = 0; i < run.count; ++i) run_block_together(run.block, members);
  }
}

Chain<NumberTime> PhaseRunner::run_tensor_group(std::uint32_t phase,
                                                const std::vector<RankTrack*>& members) {
  std::unique_ptr<TensorGroupMaps>& maps = tensor_group_maps_[members[0]->speed];
  if (!maps) maps = std::make_unique<TensorGroupMaps>(program_, blocks_[members[0]->speed]);
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
