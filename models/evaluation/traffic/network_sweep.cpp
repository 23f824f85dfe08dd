#include "models/evaluation/traffic/network_sweep.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::models::traffic {

namespace {

QueueTimes queues_of(const RankTrack& rank) {
  QueueTimes times = queue_times(rank.state);
  times[Lane::host] = Time{rank.host};
  times[Lane::data] = Time{rank.data_free};
  return times;
}

std::vector<double> speeds_of(const JobTraffic& traffic) {
  std::vector<double> speeds;
  for (const FoldedRank& rank : traffic.ranks) speeds.push_back(rank.speed);
  std::ranges::sort(speeds);
  speeds.erase(std::unique(speeds.begin(), speeds.end()), speeds.end());
  return speeds;
}

}  // namespace

NetworkSweep::NetworkSweep(const JobTraffic& job, const std::vector<FlowClass>& flow_classes,
                           TrafficEvents& events, const JobDelays& delays)
    : priced_{*job.priced},
      program_{*priced_.program},
      traffic_{job},
      flow_classes_{flow_classes},
      events_{events},
      delays_{delays},
      speeds_{speeds_of(job)},
      phases_{priced_, speeds_} {
  ensure(!job.ranks.empty(), "where maps are exact traffic needs no evaluation of its own");
  for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
    fluid_of_channel_.push_back(models::fluid_of_channel(priced_, c));
  }
  for (const std::vector<std::uint32_t>& tensor_group : job.tensor_groups) {
    const double speed = job.ranks[tensor_group[0]].speed;
    one_speed_.push_back(std::ranges::all_of(
        tensor_group, [&](std::uint32_t r) { return job.ranks[r].speed == speed; }));
  }
  number_joints();
  find_block_collectives();
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
    rank.alone = traffic_.block_collectives.kinds > 0 ||
                 traffic_.tensor_groups[folded.tensor_group].size() == 1;
    rank.notes.resize(rank.list->size());
  }
}

/// Numbers the instances of joint collectives: one for each folded group of the collective's
/// split.
void NetworkSweep::number_joints() {
  joint_of_group_.resize(traffic_.groups.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const std::uint32_t s = traffic_.groups[g].split;
    groups_of_split_.resize(std::max<std::size_t>(groups_of_split_.size(), s + 1));
    place_of_group_.push_back(static_cast<std::uint32_t>(groups_of_split_[s].size()));
    groups_of_split_[s].push_back(g);
  }
  std::size_t instances = 0;
  for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
    first_instance_.push_back(static_cast<std::uint32_t>(instances));
    instances += groups_of_split_[traffic_.split_of_joint[j]].size();
  }
  joints_.resize(instances);
}

void NetworkSweep::begin_step(std::int64_t at) {
  begun_ = at;
  before_ = nullptr;
  begin_ranks();
  channels_.assign(traffic_.channels.size(), {});
  joints_.assign(joints_.size(), {});
  block_tracks_.assign(block_tracks_.size(), {});
  tensor_group_entries_.assign(traffic_.tensor_groups.size(), {});
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
  if (traffic_.block_collectives.kinds > 0 && has_traffic_inside(r, each.target)) {
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
  const std::uint32_t number = traffic_.ranks[r].tensor_group;
  const std::vector<std::uint32_t>& tensor_group = traffic_.tensor_groups[number];
  together_.clear();
  for (const std::uint32_t member : tensor_group) {
    if (!can_run(ranks_[member], i)) return false;
    together_.push_back(&ranks_[member]);
  }
  for (RankTrack* member : together_) begin_phase(*member, each);
  if (one_speed_[number] != 0) {
    const Chain<NumberTime> latest = phases_.run_tensor_group(each.target, together_);
    tensor_group_entries_[number].push_back({i, queue_times(latest), Time{latest[state_io].value}});
  } else {
    phases_.run_together(each.target, together_);
  }
  for (const std::uint32_t member : tensor_group) {
    end_phase(member);
    if (member != r) wake(member);
  }
  return true;
}

/// Notes the end of an instruction; sends that wait for its output become ready.
void NetworkSweep::make(std::uint32_t r, Token token, InstructionTimes made) {
  RankTrack& rank = ranks_[r];
  rank.note(token).made = made;
  for (std::uint32_t i = rank.note(token).send; i > 0; i = rank.sends[i - 1].next) {
    sent(r, RankTrack::Send{rank.sends[i - 1]});
  }
}

void NetworkSweep::sent(std::uint32_t r, const RankTrack::Send& each) {
  RankTrack& rank = ranks_[r];
  const std::int64_t output = rank.made((*rank.list)[each.at].input).output;
  ChannelTrack& channel = channels_[each.channel];
  channel.ready[each.k - channel.first] = std::max(rank.note(each.at).launch, output);
  make(r, each.at, {output, output});
  try_channel(each.channel);
  wake(r);
}

/// Begins the next transfer of a channel if its send is ready and its receive is launched.
void NetworkSweep::try_channel(std::uint32_t id) {
  ChannelTrack& channel = channels_[id];
  while (!channel.busy) {
    const std::size_t k = channel.ends.size();
    if (k >= channel.ready.size() || k >= channel.posted.size()) return;
    if (channel.ready[k] == unknown) return;
    const std::int64_t start = std::max({channel.ready[k], channel.posted[k], channel.free});
    channel.busy = true;
    channel.starts.push_back(Time{start});
    const std::uint32_t c = traffic_.channels[id].channel;
    begin(id, {.k = channel.first + k,
               .start = start,
               .latency = priced_.channels[c] - fluid_of_channel_[c],
               .fluid = fluid_of_channel_[c]});
  }
}

void NetworkSweep::transfer_ended(std::uint32_t id, std::int64_t end) {
  ChannelTrack& channel = channels_[id];
  const std::uint32_t to = traffic_.channels[id].to;
  make(to, channel.receives[channel.ends.size()], {end, end});
  channel.ends.push_back(Time{end});
  channel.busy = false;
  channel.free = end;
  --transfers_under_way_;
  wake(to);
}

std::uint32_t NetworkSweep::instance(std::uint32_t r, std::uint32_t joint) const {
  const std::uint32_t group = traffic_.ranks[r].group(traffic_.split_of_joint[joint]);
  return first_instance_[joint] + place_of_group_[group];
}

/// Notes, once, that a rank is ready for its first joint collective that has not ended; the last
/// member begins it.
void NetworkSweep::try_joint(std::uint32_t r) {
  RankTrack& rank = ranks_[r];
  if (rank.announced || rank.joint_at == rank.joints.size()) return;
  const Token i = rank.joints[rank.joint_at];
  const Instruction& each = (*rank.list)[i];
  if (!rank.known(each.input)) return;
  if (stops_at_joints_) {
    at_joint_ = true;
    return;
  }
  const PricedOperation& price = priced_.collectives[each.target];
  const std::int64_t ready = std::max(rank.note(i).launch, rank.made(each.input).end);
  rank.ready.push_back(Time{ready});
  rank.announced = true;
  JointTrack& joint = joints_[instance(r, each.target)];
  joint.start = std::max({joint.start, ready, rank.data_free + price.lead.count()});
  const std::uint32_t group = traffic_.ranks[r].group(traffic_.split_of_joint[each.target]);
  if (++joint.arrived < traffic_.groups[group].members.size()) return;
  joint_of_group_[group] = each.target;
  begin(flow_class_of(group), {.k = each.target,
                               .start = joint.start,
                               .latency = price.duration - price.fluid,
                               .fluid = price.fluid});
}

void NetworkSweep::joint_ended(std::uint32_t group, std::int64_t end) {
  joints_[first_instance_[joint_of_group_[group]] + place_of_group_[group]].end = end;
  for (const std::uint32_t member : traffic_.groups[group].members) {
    RankTrack& rank = ranks_[member];
    ensure(rank.announced, "a collective ended without one of its members");
    rank.announced = false;
    rank.data_free = end;
    make(member, rank.joints[rank.joint_at++], {end, end});
    wake(member);
  }
}

/// How long a fluid part takes alone on its links.
std::int64_t NetworkSweep::alone(std::uint32_t id, Time fluid) const {
  const FlowClass& flows = flow_classes_[traffic_.first_flow_class + id];
  if (flows.wire == flows.cap) return fluid.count();
  const Int128 amount = Int128{fluid.count()} * flows.wire;
  return static_cast<std::int64_t>((amount + flows.cap - 1) / flows.cap);
}

LaunchSource NetworkSweep::source_of(std::uint32_t id) const {
  const std::size_t replicas = traffic_.folded.size() / program_.classes.size();
  const auto tensor_group_of = [&](std::uint32_t r) {
    const std::size_t tensor = static_cast<std::size_t>(program_.mesh.degree(MeshAxis::tensor));
    return static_cast<std::uint32_t>(traffic_.ranks[r].first % replicas / tensor);
  };
  if (id < channels_.size()) {
    const FoldedChannel& channel = traffic_.channels[id];
    return {delays_.job, false, channel.channel, tensor_group_of(channel.from)};
  }
  const FoldedGroup& group = traffic_.groups[id - channels_.size()];
  std::uint32_t first = tensor_group_of(group.members[0]);
  for (const std::uint32_t member : group.members) first = std::min(first, tensor_group_of(member));
  return {delays_.job, true, group.split, first};
}

void NetworkSweep::begin(std::uint32_t id, const Launch& launch) {
  const std::uint32_t number = traffic_.first_flow_class + id;
  Time latency = launch.latency;
  const bool delayed = delays_.delays.mean > Time{} && launch.fluid > Time{};
  if (delayed) latency += delays_.delays.of(source_of(id), launch.k);
  if (!flow_classes_[number].contended || launch.fluid == Time{}) {
    return ended(id, launch.start + latency.count() + alone(id, launch.fluid));
  }
  events_.begin(number, launch.start, latency, launch.fluid);
}

void NetworkSweep::ended(std::uint32_t id, std::int64_t end) {
  if (id < channels_.size()) return transfer_ended(id, end);
  const auto group = id - static_cast<std::uint32_t>(channels_.size());
  if (group_is_in_blocks_[group] != 0) return inside_ended(group, end);
  joint_ended(group, end);
}

void NetworkSweep::refuse_unfinished() const {
  std::string text;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const RankTrack& rank = ranks_[r];
    const Token at = std::min(rank.host_at, rank.device_at);
    if (at == rank.list->size() && rank.joint_at == rank.joints.size()) continue;
    text += " rank " + std::to_string(traffic_.ranks[r].first) + " waits at i" +
            std::to_string(at) + ";";
    if (text.size() > 200) break;
  }
  if (!text.empty()) throw ContractError{"the schedule cannot proceed:" + text};
}

/// Finds the groups whose collectives inside blocks are evaluated as traffic. A group whose members
/// are all equal, and which nothing can slow or delay, takes its price, as in the maps. In the
/// others the members run collectives one after another.
void NetworkSweep::find_block_collectives() {
  block_tracks_.resize(traffic_.groups.size());
  group_is_in_blocks_.assign(traffic_.groups.size(), 0);
  const BlockCollectives& inside = traffic_.block_collectives;
  block_groups_.assign(traffic_.ranks.size() * inside.kinds, no_kind);
  for (std::uint32_t r = 0; r < traffic_.ranks.size(); ++r) {
    for (std::uint32_t kind = 0; kind < inside.kinds; ++kind) {
      const std::uint32_t s = inside.split(traffic_.ranks[r].rank_class, kind);
      if (s == no_kind) continue;
      const std::uint32_t group = traffic_.ranks[r].group(s);
      const FlowClass& flows = flow_classes_[traffic_.flow_class_of_group(group)];
      group_is_in_blocks_[group] = 1;
      const bool delayed = delays_.delays.mean > Time{} && flows.wire > 0;
      const bool alone = !flows.contended && flows.cap == flows.wire && !delayed;
      if (alone && traffic_.groups[group].members.size() == 1) continue;
      block_groups_[r * inside.kinds + kind] = group;
    }
  }
  for (const Phase& phase : program_.phases) {
    std::vector<std::uint32_t>& kinds = kinds_of_phase_.emplace_back();
    if (inside.kinds == 0) continue;
    for (const Invocation& run : phase.invocations) {
      for (const std::uint32_t kind : inside.of_block[run.block]) {
        if (kind != no_kind && run.count > 0) kinds.push_back(kind);
      }
    }
    std::ranges::sort(kinds);
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  }
}

bool NetworkSweep::has_traffic_inside(std::uint32_t r, std::uint32_t phase) const {
  const std::size_t kinds = traffic_.block_collectives.kinds;
  return std::ranges::any_of(kinds_of_phase_[phase], [&](std::uint32_t kind) {
    return block_groups_[r * kinds + kind] != no_kind;
  });
}

std::uint32_t NetworkSweep::block_group(std::uint32_t r, std::uint32_t block,
                                        std::size_t operation) const {
  const std::uint32_t kind = traffic_.block_collectives.kind(block, operation);
  return kind == no_kind ? no_kind : block_groups_[r * traffic_.block_collectives.kinds + kind];
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
    const std::int64_t host = run_inside_block(r, of.block);
    // Where no later block makes it wait, the host is through before the block's last end is known.
    if (run.host == unknown && host < infinite) {
      const auto later = phases_.launches_after(each.target, run.invocation, run.repeat);
      if (later) run.host = host + *later;
    }
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
    const std::uint32_t group = block_group(r, id, i);
    if (group != no_kind) {
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
  BlockCollectiveTrack& track = block_tracks_[group];
  track.start = track.arrived == 0 ? start : std::max(track.start, start);
  track.operation = operation;
  if (++track.arrived < traffic_.groups[group].members.size()) return;
  const PricedOperation& price = priced_.blocks[block][operation];
  begin(flow_class_of(group), {.k = track.run++,
                               .start = track.start,
                               .latency = price.duration - price.fluid,
                               .fluid = price.fluid});
}

void NetworkSweep::inside_ended(std::uint32_t group, std::int64_t end) {
  BlockCollectiveTrack& track = block_tracks_[group];
  track.arrived = 0;
  for (const std::uint32_t member : traffic_.groups[group].members) {
    InsideRun::Meeting& meeting = ranks_[member].inside.meetings[track.operation];
    ensure(meeting.announced, "a collective ended without one of its members");
    meeting.start = track.start;
    meeting.end = end;
    wake(member);
  }
}

Time NetworkSweep::last() const {
  Time last{};
  for (const RankTrack& rank : ranks_) last = std::max(last, queues_of(rank).last());
  for (const ChannelTrack& channel : channels_) {
    last = std::max(last, Time{channel.free});
  }
  return last;
}

Time NetworkSweep::step_end() const {
  return std::max(last(), Time{begun_} + priced_.bound.time);
}

void NetworkSweep::add_times(NetworkTimes& found) const {
  for (const RankTrack& rank : ranks_) found.ranks.push_back(queues_of(rank));
  for (const ChannelTrack& channel : channels_) {
    found.transfers.push_back(channel.all(&ChannelTrack::ends));
  }
  for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
    std::vector<Time>&starts = found.collective_starts.emplace_back(),
    &ends = found.collective_ends.emplace_back();
    const std::size_t groups = groups_of_split_[traffic_.split_of_joint[j]].size();
    for (std::size_t g = 0; g < groups; ++g) {
      starts.push_back(Time{joints_[first_instance_[j] + g].start});
      ends.push_back(Time{joints_[first_instance_[j] + g].end});
    }
  }
  found.times = replica(last_replica());
  found.times.step = step_end();
}

/// The replica of the rank that ends last, transfers to it included; of equals, the first.
std::uint32_t NetworkSweep::last_replica() const {
  std::vector<Time> ends;
  for (const RankTrack& rank : ranks_) {
    ends.push_back(queues_of(rank).last());
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    Time& end = ends[traffic_.channels[c].to];
    end = std::max(end, Time{channels_[c].free});
  }
  const auto last = std::ranges::max_element(ends) - ends.begin();
  const auto replicas =
      static_cast<std::uint32_t>(traffic_.folded.size() / program_.classes.size());
  return traffic_.ranks[static_cast<std::size_t>(last)].first % replicas;
}

StepTimes NetworkSweep::replica(std::uint32_t number) const {
  StepTimes times;
  const std::size_t replicas = traffic_.folded.size() / program_.classes.size();
  const auto folded = [&](std::size_t c) { return traffic_.folded[c * replicas + number]; };
  for (std::size_t c = 0; c < program_.classes.size(); ++c) {
    const RankTrack& rank = ranks_[folded(c)];
    times.ranks.push_back(queues_of(rank));
    times.collectives_ready.push_back(rank.ready);
    times.inside.push_back(inside_of(folded(c)));
    times.speeds.push_back(traffic_.ranks[folded(c)].speed);
  }
  for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
    const std::uint32_t id = traffic_.ranks[folded(program_.channels[c].to)].channel(c);
    times.transfers.push_back(channels_[id].all(&ChannelTrack::ends));
    times.transfer_starts.push_back(channels_[id].all(&ChannelTrack::starts));
  }
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    const JointTrack& joint = joints_[instance(folded(program_.collectives[j].classes[0]), j)];
    times.collective_starts.push_back(Time{joint.start});
    times.collective_ends.push_back(Time{joint.end});
  }
  return times;
}

ChannelTrack ChannelTrack::after(const ChannelTrack& track) {
  const auto left = [&](const auto& all) {
    return std::decay_t<decltype(all)>(
        all.begin() + static_cast<std::ptrdiff_t>(std::min(track.ends.size(), all.size())),
        all.end());
  };
  return {.before = &track,
          .first = track.ends.size(),
          .ready = left(track.ready),
          .posted = left(track.posted),
          .receives = left(track.receives),
          .starts = left(track.starts),
          .ends = {},
          .busy = track.busy,
          .free = track.free};
}

/// The rest of a rank's list needs few of the times before it; only those are copied.
void NetworkSweep::resume(const NetworkSweep& before, const JobPrefix& prefix) {
  before_ = &before;
  prefix_ = prefix;
  begun_ = before.begun_;
  tensor_group_entries_.assign(traffic_.tensor_groups.size(), {});
  channels_.clear();
  for (std::uint32_t c = 0; c < traffic_.channels.size(); ++c) {
    channels_.push_back(ChannelTrack::after(before.channels_[prefix.source(traffic_, c)]));
    transfers_under_way_ += channels_[c].posted.size();
  }
  const std::vector<Token> first = before.oldest_needed();
  ranks_.clear();
  for (std::uint32_t r = 0; r < traffic_.ranks.size(); ++r) {
    const std::uint32_t stood = prefix.rank(r);
    ranks_.push_back(track_after(before.ranks_[stood], first[stood], r));
    unfinished_ranks_ += ranks_[r].finished ? 0 : 1;
  }
  resume_joints();
  resume_block_collectives();
}

/// Copies joint collectives, which other jobs may be running, and counts their arrived members
/// again: there may be more of them now.
void NetworkSweep::resume_joints() {
  const auto channels = static_cast<std::uint32_t>(channels_.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const auto stood = prefix_.source(traffic_, channels + g) -
                       static_cast<std::uint32_t>(before_->channels_.size());
    joint_of_group_[g] = before_->joint_of_group_[stood];
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      if (traffic_.split_of_joint[j] != traffic_.groups[g].split) continue;
      JointTrack& joint = joints_[first_instance_[j] + place_of_group_[g]];
      joint = before_->joints_[before_->first_instance_[j] + before_->place_of_group_[stood]];
      joint.arrived = 0;
    }
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].announced) continue;
    const Token i = ranks_[r].joints[ranks_[r].joint_at];
    ++joints_[instance(r, (*ranks_[r].list)[i].target)].arrived;
  }
}

/// The same for collectives inside blocks.
void NetworkSweep::resume_block_collectives() {
  const auto channels = static_cast<std::uint32_t>(channels_.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const auto stood = prefix_.source(traffic_, channels + g) -
                       static_cast<std::uint32_t>(before_->channels_.size());
    block_tracks_[g] = before_->block_tracks_[stood];
    block_tracks_[g].arrived = 0;
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const RankTrack& rank = ranks_[r];
    if (!rank.inside.active || !rank.inside.begun) continue;
    const Instruction& each = (*rank.list)[rank.device_at];
    const std::uint32_t block =
        program_.phases[each.target].invocations[rank.inside.invocation].block;
    for (std::size_t i = 0; i < rank.inside.meetings.size(); ++i) {
      const InsideRun::Meeting& meeting = rank.inside.meetings[i];
      if (!meeting.announced || meeting.end != unknown) continue;
      ++block_tracks_[block_group(r, block, i)].arrived;
    }
  }
}

/// For each rank, the first instruction whose times may still be needed.
std::vector<Token> NetworkSweep::oldest_needed() const {
  std::vector<Token> oldest;
  for (const RankTrack& rank : ranks_) {
    Token& first = oldest.emplace_back(std::min(rank.host_at, rank.device_at));
    for (std::size_t j = rank.joint_at; j < rank.joints.size(); ++j) {
      first = std::min(first, rank.joints[j]);
    }
    for (const RankTrack::Send& each : rank.sends) {
      if (!rank.known((*rank.list)[each.at].input)) first = std::min(first, each.at);
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const ChannelTrack& channel = channels_[c];
    Token& first = oldest[traffic_.channels[c].to];
    for (std::size_t k = channel.ends.size(); k < channel.receives.size(); ++k) {
      first = std::min(first, channel.receives[k]);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::vector<Instruction>& list = *ranks_[r].list;
    for (Token i = oldest[r], at = i; at < list.size(); ++at) {
      if (list[at].input != no_token) i = std::min(i, list[at].input);
      if (list[at].awaits != no_token) i = std::min(i, list[at].awaits);
      oldest[r] = i;
    }
  }
  return oldest;
}

RankTrack NetworkSweep::track_after(const RankTrack& before, Token first, std::uint32_t r) const {
  RankTrack rank;
  rank.list = before.list;
  rank.speed = before.speed;
  rank.alone = traffic_.block_collectives.kinds > 0 ||
               traffic_.tensor_groups[traffic_.ranks[r].tensor_group].size() == 1;
  rank.host_at = before.host_at;
  rank.device_at = before.device_at;
  rank.launched = before.launched;
  rank.host = before.host;
  rank.state = before.state;
  rank.first = first;
  rank.notes.assign(before.notes.begin() + (first - before.first), before.notes.end());
  for (RankTrack::Note& note : rank.notes) note.send = 0;
  rank.data_free = before.data_free;
  rank.joints.assign(before.joints.begin() + static_cast<std::ptrdiff_t>(before.joint_at),
                     before.joints.end());
  rank.announced = before.announced;
  rank.ready = before.ready;
  rank.inside = before.inside;
  rank.finished = before.finished;
  for (RankTrack::Send each : before.sends) {
    const Token input = (*rank.list)[each.at].input;
    if (before.known(input)) continue;
    each.channel = traffic_.ranks[r].channel(prefix_.traffic->channels[each.channel].channel);
    each.next = rank.note(input).send;
    rank.sends.push_back(each);
    rank.note(input).send = static_cast<std::uint32_t>(rank.sends.size());
  }
  return rank;
}

/// Times of a rank's collectives inside phases, those found by the rank that stood for it included.
InsideTimes NetworkSweep::inside_of(std::uint32_t r) const {
  InsideTimes found;
  if (before_ != nullptr) found = before_->inside_of(prefix_.rank(r));
  const auto append = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append(found.phases, ranks_[r].inside_times.phases);
  append(found.starts, ranks_[r].inside_times.starts);
  append(found.ends, ranks_[r].inside_times.ends);
  append(found.units, tensor_group_entries_[traffic_.ranks[r].tensor_group]);
  return found;
}

}  // namespace orrery::models::traffic
