#include <algorithm>

#include "models/evaluation/traffic/network_sweep.hpp"
#include "sim/errors.hpp"

namespace orrery::models::traffic {

/// Finds the groups whose collectives inside blocks are evaluated as traffic. A group whose members
/// are all equal, and which nothing can slow or delay, takes its price, as in the maps. In the
/// others the members run collectives one after another.
void NetworkSweep::find_inside() {
  inside_.resize(traffic_.groups.size());
  group_is_inside_.assign(traffic_.groups.size(), 0);
  const InsideCollectives& inside = traffic_.inside;
  inside_groups_.assign(traffic_.ranks.size() * inside.kinds, no_inside);
  for (std::uint32_t r = 0; r < traffic_.ranks.size(); ++r) {
    for (std::uint32_t kind = 0; kind < inside.kinds; ++kind) {
      const std::uint32_t s = inside.structure(traffic_.ranks[r].rank_class, kind);
      if (s == no_inside) continue;
      const std::uint32_t group = traffic_.ranks[r].group(s);
      const TrafficTemplate& of = templates_[traffic_.group_template(group)];
      group_is_inside_[group] = 1;
      const bool delayed = delays_.delays.mean > Time{} && of.wire > 0;
      const bool alone = !of.shared && of.full == of.wire && !delayed;
      if (alone && traffic_.groups[group].members.size() == 1) continue;
      inside_groups_[r * inside.kinds + kind] = group;
    }
  }
  for (const Phase& phase : program_.phases) {
    std::vector<std::uint32_t>& kinds = kinds_of_phase_.emplace_back();
    if (inside.kinds == 0) continue;
    for (const Invocation& run : phase.invocations) {
      for (const std::uint32_t kind : inside.of_block[run.block]) {
        if (kind != no_inside && run.count > 0) kinds.push_back(kind);
      }
    }
    std::ranges::sort(kinds);
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  }
}

bool NetworkSweep::meets_inside(std::uint32_t r, std::uint32_t phase) const {
  const std::size_t kinds = traffic_.inside.kinds;
  return std::ranges::any_of(kinds_of_phase_[phase], [&](std::uint32_t kind) {
    return inside_groups_[r * kinds + kind] != no_inside;
  });
}

std::uint32_t NetworkSweep::inside_group(std::uint32_t r, std::uint32_t block,
                                         std::size_t operation) const {
  const std::uint32_t kind = traffic_.inside.kind(block, operation);
  return kind == no_inside ? no_inside : inside_groups_[r * traffic_.inside.kinds + kind];
}

/// Runs a phase as far as ends are known; true when it has ended. Only its kernels wait for the
/// token that it awaits; a collective that needs none of them may begin before.
bool NetworkSweep::run_inside(std::uint32_t r, const Instruction& each) {
  RankTrack& rank = ranks_[r];
  InsideRun& run = rank.inside;
  if (!run.active) {
    Instruction now = each;
    now.awaits = no_token;
    begin_phase(rank, now);
    run.active = true;
    run.awaits = each.awaits;
    run.begun = false;
    run.invocation = run.at = 0;
    run.repeat = 0;
    run.host = unknown;
    rank.inside_times.phases.push_back(rank.device_at);
  }
  const std::vector<Invocation>& invocations = program_.phases[each.target].invocations;
  while (run.invocation < invocations.size()) {
    const Invocation& of = invocations[run.invocation];
    if (run.repeat >= of.count) {
      ++run.invocation;
      run.repeat = 0;
      continue;
    }
    const bool last = run.invocation + 1 == invocations.size() && run.repeat + 1 == of.count;
    const std::int64_t host = run_inside_block(r, of.block);
    if (last && host < infinite) run.host = host;
    if (run.at < phases_.block(rank, of.block).steps.size()) return false;
    ++run.repeat;
    run.at = 0;
    run.begun = false;
  }
  run.active = false;
  return true;
}

/// Has the token that the phase awaits ended? Then its kernels begin no earlier.
bool NetworkSweep::await_inside(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  Token& token = rank.inside.awaits;
  if (token == no_token) return true;
  if (!rank.known(token)) return false;
  std::int64_t& compute = rank.state[state_compute].value;
  compute = std::max({compute, rank.note(rank.device_at).launch, rank.made(token).end});
  token = no_token;
  return true;
}

/// Runs a block again from its first operation whose end was not known, and keeps what is known
/// now. Returns when the host has launched all of it, infinite where that is not known.
std::int64_t NetworkSweep::run_inside_block(std::uint32_t r, std::uint32_t id) {
  RankTrack& rank = ranks_[r];
  InsideRun& run = rank.inside;
  const ChainBlock& block = phases_.block(rank, id);
  if (!run.begun) {
    run.begun = true;
    run.meetings.assign(block.steps.size(), {});
    run.output = rank.state[state_io];
  }
  bool known = await_inside(r);
  Chain<NumberTime> state = rank.state;
  if (!known) state[state_compute].value = infinite;
  BlockRun<NumberTime> probe{block, state, run.ends, run.output};
  for (std::size_t i = run.at; i < block.steps.size(); ++i) {
    NumberTime start = probe.start(i);
    NumberTime end{start.value + block.steps[i].duration};
    const std::uint32_t group = inside_group(r, id, i);
    if (group != no_inside) {
      meet(r, group, id, i, start.value);
      const InsideRun::Meeting& meeting = run.meetings[i];
      if (meeting.end != unknown) start.value = meeting.start;
      end.value = meeting.end == unknown ? infinite : meeting.end;
    }
    probe.end_at(i, start, end, [](auto&&...) {});
    known = known && end.value < infinite && state[state_host].value < infinite;
    if (!known) continue;
    rank.state = state;
    run.output = probe.output();
    run.at = i + 1;
    if (!block.steps[i].collective) continue;
    rank.inside_times.starts.push_back(Time{start.value});
    rank.inside_times.ends.push_back(Time{end.value});
  }
  if (known) rank.state[state_io] = run.output;
  return state[state_host].value;
}

/// Notes, once, that a member is ready for a collective of its group; the last member begins it.
void NetworkSweep::meet(std::uint32_t r, std::uint32_t group, std::uint32_t block,
                        std::size_t operation, std::int64_t start) {
  InsideRun::Meeting& meeting = ranks_[r].inside.meetings[operation];
  if (meeting.announced || start >= infinite) return;
  meeting.announced = true;
  InsideTrack& track = inside_[group];
  track.start = track.arrived == 0 ? start : std::max(track.start, start);
  track.operation = operation;
  if (++track.arrived < traffic_.groups[group].members.size()) return;
  const PricedOperation& price = priced_.blocks[block][operation];
  begin(template_of(group), {.k = track.run++,
                             .start = track.start,
                             .latency = price.duration - price.fluid,
                             .fluid = price.fluid});
}

void NetworkSweep::inside_ended(std::uint32_t group, std::int64_t end) {
  InsideTrack& track = inside_[group];
  track.arrived = 0;
  for (const std::uint32_t member : traffic_.groups[group].members) {
    InsideRun::Meeting& meeting = ranks_[member].inside.meetings[track.operation];
    ensure(meeting.announced, "a collective ended without one of its members");
    meeting.start = track.start;
    meeting.end = end;
    wake(member);
  }
}

}  // namespace orrery::models::traffic
