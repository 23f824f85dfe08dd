#include "models/evaluation/traffic/network_sweep.hpp"

#include <algorithm>
#include <utility>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

std::vector<double> speeds_of(const JobTraffic& traffic) {
  std::vector<double> speeds;
  for (const FoldedRank& rank : traffic.ranks) speeds.push_back(rank.speed);
  std::ranges::sort(speeds);
  speeds.erase(std::unique(speeds.begin(), speeds.end()), speeds.end());
  return speeds;
}

}  // namespace

NetworkSweep::NetworkSweep(const JobTraffic& job, const std::vector<TrafficTemplate>& templates,
                           Wires& wires, const JobDelays& delays)
    : priced_{*job.priced},
      program_{*priced_.program},
      traffic_{job},
      templates_{templates},
      wires_{wires},
      delays_{delays},
      speeds_{speeds_of(job)},
      phases_{priced_, speeds_} {
  ensure(!job.ranks.empty(), "certified traffic needs no evaluation of its own");
  for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
    fluid_of_channel_.push_back(models::fluid_of_channel(priced_, c));
  }
  for (const std::vector<std::uint32_t>& unit : job.units) {
    const double speed = job.ranks[unit[0]].speed;
    one_speed_.push_back(
        std::ranges::all_of(unit, [&](std::uint32_t r) { return job.ranks[r].speed == speed; }));
  }
  number_joints();
  find_inside();
}

void NetworkSweep::begin_ranks() {
  ranks_.assign(traffic_.ranks.size(), {});
  unfinished_ranks_ = ranks_.size();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const FoldedRank& folded = traffic_.ranks[r];
    RankTrack& rank = ranks_[r];
    rank.list = &program_.classes[folded.rank_class].instructions;
    const auto speed = std::ranges::lower_bound(speeds_, folded.speed);
    rank.speed = static_cast<std::size_t>(speed - speeds_.begin());
    for (NumberTime& each : rank.state) each.value = begun_;
    rank.host = begun_ + priced_.step_launch.count();
    rank.data_free = begun_ + priced_.carried_by(folded.rank_class).count();
    rank.alone = traffic_.inside.kinds > 0 || traffic_.units[folded.unit].size() == 1;
    rank.notes.resize(rank.list->size());
  }
}

/// Numbers the instances of joint collectives: one for each folded group of the collective's
/// structure.
void NetworkSweep::number_joints() {
  joint_of_group_.resize(traffic_.groups.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const std::uint32_t s = traffic_.groups[g].structure;
    groups_of_structure_.resize(std::max<std::size_t>(groups_of_structure_.size(), s + 1));
    place_of_group_.push_back(static_cast<std::uint32_t>(groups_of_structure_[s].size()));
    groups_of_structure_[s].push_back(g);
  }
  std::size_t instances = 0;
  for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
    first_instance_.push_back(static_cast<std::uint32_t>(instances));
    instances += groups_of_structure_[traffic_.structure_of_joint[j]].size();
  }
  joints_.resize(instances);
}

void NetworkSweep::begin_step(std::int64_t at) {
  begun_ = at;
  before_ = nullptr;
  begin_ranks();
  channels_.assign(traffic_.channels.size(), {});
  joints_.assign(joints_.size(), {});
  inside_.assign(inside_.size(), {});
  unit_entries_.assign(traffic_.units.size(), {});
  wake_all();
}

void NetworkSweep::wake_all() {
  for (auto r = static_cast<std::uint32_t>(ranks_.size()); r-- > 0;) wake(r);
  drain();
}

void NetworkSweep::traffic_ended(std::uint32_t id, std::int64_t now) {
  ended(id, now);
  if (id < channels_.size()) try_channel(id);
  drain();
}

void NetworkSweep::wake(std::uint32_t r) {
  if (ranks_[r].queued) return;
  ranks_[r].queued = true;
  runnable_.push_back(r);
}

void NetworkSweep::drain() {
  while (!runnable_.empty()) {
    const std::uint32_t r = runnable_.back();
    runnable_.pop_back();
    advance(r);
  }
}

void NetworkSweep::advance(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  for (bool moved = true; moved;) {
    moved = advance_device(r);  // may give the host's time at the end of a phase
    moved = advance_host(r) || moved;
  }
  rank.queued = false;  // not woken until here: the loop above has advanced it
  try_joint(r);
  if (rank.finished || rank.host_at < rank.list->size() || rank.device_at < rank.list->size() ||
      rank.joint_at < rank.joints.size()) {
    return;
  }
  rank.finished = true;
  --unfinished_ranks_;
}

bool NetworkSweep::advance_host(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  const Token before = rank.host_at;
  const bool launched = rank.launched;
  rank_ = r;
  while (rank.host_at < rank.list->size() &&
         visit(rank.host_at, (*rank.list)[rank.host_at], *this)) {
    rank.launched = false;
    ++rank.host_at;
  }
  return rank.host_at != before || rank.launched != launched;
}

/// Where the host waits for a kernel of the phase, the kernels are run first; else the host runs
/// ahead of them.
bool NetworkSweep::phase(Token i, const Instruction& each) {
  RankTrack& rank = ranks_[rank_];
  if (!phases_.host_waits(each.target)) {
    rank.note(i).launch = rank.host;
    rank.host += phases_.launches(each.target);
    return true;
  }
  if (!rank.launched) {
    rank.note(i).launch = rank.host;
    rank.launched = true;
    return false;
  }
  if (rank.device_at > i) {
    rank.host = rank.state[state_host].value;
    return true;
  }
  if (rank.device_at < i || !rank.inside.active || rank.inside.host == unknown) return false;
  rank.host = rank.inside.host;
  return true;
}

bool NetworkSweep::send(Token i, const Instruction& each) {
  RankTrack& rank = ranks_[rank_];
  rank.host += priced_.transfer_launch.count();
  rank.note(i).launch = rank.host;
  const std::uint32_t channel = traffic_.ranks[rank_].channel(each.target);
  const std::size_t k = channels_[channel].first + channels_[channel].ready.size();
  const RankTrack::Send made{i, channel, k, 0};
  channels_[channel].ready.push_back(unknown);
  if (rank.known(each.input)) {
    sent(rank_, made);
    return true;
  }
  rank.sends.push_back(made);
  rank.sends.back().next =
      std::exchange(rank.note(each.input).send, static_cast<std::uint32_t>(rank.sends.size()));
  return true;
}

bool NetworkSweep::receive(Token i, const Instruction& each) {
  const std::uint32_t r = rank_;
  RankTrack& rank = ranks_[r];
  if (!rank.launched) {
    rank.launched = true;
    rank.host += priced_.transfer_launch.count();
    const std::uint32_t id = traffic_.ranks[r].channel(each.target);
    channels_[id].posted.push_back(rank.host);
    ++transfers_under_way_;
    channels_[id].receives.push_back(i);
    try_channel(id);
  }
  if (!priced_.waits_for_receive()) return true;
  if (rank.note(i).made.end == unknown) return false;
  rank.host = std::max(rank.host, rank.note(i).made.end);
  return true;
}

bool NetworkSweep::joint(Token i, const Instruction& each) {
  const std::uint32_t r = rank_;
  RankTrack& rank = ranks_[r];
  if (!rank.launched) {
    rank.launched = true;
    rank.host += priced_.collectives[each.target].launch.count();
    rank.note(i).launch = rank.host;
    rank.joints.push_back(i);
    try_joint(r);
  }
  if (!priced_.waits_for(program_.collectives[each.target])) return true;
  if (rank.note(i).made.end == unknown) return false;
  rank.host = std::max(rank.host, rank.note(i).made.end);
  return true;
}

bool NetworkSweep::advance_device(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  const Token before = rank.device_at;
  while (rank.device_at < rank.list->size()) {
    if (!runs_phase((*rank.list)[rank.device_at])) {
      ++rank.device_at;
    } else if (!run_phase(r)) {
      break;
    }
  }
  return rank.device_at != before;
}

bool NetworkSweep::can_run(const RankTrack& rank, Token i) const {
  const Instruction& each = (*rank.list)[i];
  return rank.device_at == i && rank.reached(i) && rank.known(each.input) &&
         rank.known(each.awaits);
}

void NetworkSweep::begin_phase(RankTrack& rank, const Instruction& each) const {
  std::int64_t& compute = rank.state[state_compute].value;
  const std::int64_t host = rank.note(rank.device_at).launch;
  rank.state[state_host].value = host;
  if (each.awaits != no_token) {
    compute = std::max({compute, host, rank.made(each.awaits).end});
  }
  rank.state[state_io].value = rank.made(each.input).output;
}

void NetworkSweep::end_phase(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  make(r, rank.device_at++, {rank.state[state_io].value, rank.state[state_compute].value});
}

/// Runs the next phase of a rank's kernels; false if it cannot run yet.
bool NetworkSweep::run_phase(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  const Token i = rank.device_at;
  const Instruction& each = (*rank.list)[i];
  if (traffic_.inside.kinds > 0 && meets_inside(r, each.target)) {
    if (!rank.reached(i) || !rank.known(each.input)) return false;
    if (!run_inside(r, each)) return false;
    end_phase(r);
    return true;
  }
  if (!can_run(rank, i)) return false;
  if (!rank.alone && phases_.meets(each.target)) {
    return run_phase_together(r, each);
  }
  begin_phase(rank, each);
  phases_.run(each.target, rank);
  end_phase(r);
  return true;
}

/// The same together with the other members of the rank's tensor group.
bool NetworkSweep::run_phase_together(std::uint32_t r, const Instruction& each) {
  const Token i = ranks_[r].device_at;
  const std::uint32_t number = traffic_.ranks[r].unit;
  const std::vector<std::uint32_t>& unit = traffic_.units[number];
  together_.clear();
  for (const std::uint32_t member : unit) {
    if (!can_run(ranks_[member], i)) return false;
    together_.push_back(&ranks_[member]);
  }
  for (RankTrack* member : together_) begin_phase(*member, each);
  if (one_speed_[number] != 0) {
    const Chain<NumberTime> latest = phases_.run_unit(each.target, together_);
    unit_entries_[number].push_back({i, queue_times(latest), Time{latest[state_io].value}});
  } else {
    phases_.run_together(each.target, together_);
  }
  for (const std::uint32_t member : unit) {
    end_phase(member);
    if (member != r) wake(member);
  }
  return true;
}

}  // namespace orrery::models::traffic
