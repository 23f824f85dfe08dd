#include <algorithm>
#include <limits>

#include "models/evaluation/traffic/network_sweep.hpp"
#include "sim/errors.hpp"

namespace orrery::models::traffic {

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
  const std::uint32_t group = traffic_.ranks[r].group(traffic_.structure_of_joint[joint]);
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
  const std::uint32_t group = traffic_.ranks[r].group(traffic_.structure_of_joint[each.target]);
  if (++joint.arrived < traffic_.groups[group].members.size()) return;
  joint_of_group_[group] = each.target;
  begin(template_of(group), {.k = each.target,
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
  const TrafficTemplate& of = templates_[traffic_.first_template + id];
  if (of.wire == of.full) return fluid.count();
  const Int128 amount = Int128{fluid.count()} * of.wire;
  return static_cast<std::int64_t>((amount + of.full - 1) / of.full);
}

LaunchSource NetworkSweep::source_of(std::uint32_t id) const {
  const std::size_t replicas = traffic_.folded.size() / program_.classes.size();
  const auto unit_of = [&](std::uint32_t r) {
    const std::size_t tensor = static_cast<std::size_t>(program_.mesh.degree(MeshAxis::tensor));
    return static_cast<std::uint32_t>(traffic_.ranks[r].first % replicas / tensor);
  };
  if (id < channels_.size()) {
    const FoldedChannel& channel = traffic_.channels[id];
    return {delays_.job, false, channel.channel, unit_of(channel.from)};
  }
  const FoldedGroup& group = traffic_.groups[id - channels_.size()];
  std::uint32_t first = unit_of(group.members[0]);
  for (const std::uint32_t member : group.members) first = std::min(first, unit_of(member));
  return {delays_.job, true, group.structure, first};
}

void NetworkSweep::begin(std::uint32_t id, const Launch& launch) {
  const std::uint32_t of_all = traffic_.first_template + id;
  Time latency = launch.latency;
  const bool delayed = delays_.delays.mean > Time{} && launch.fluid > Time{};
  if (delayed) latency += delays_.delays.of(source_of(id), launch.k);
  if (!templates_[of_all].shared || launch.fluid == Time{}) {
    return ended(id, launch.start + latency.count() + alone(id, launch.fluid));
  }
  wires_.begin(of_all, launch.start, latency, launch.fluid);
}

void NetworkSweep::ended(std::uint32_t id, std::int64_t end) {
  if (id < channels_.size()) return transfer_ended(id, end);
  const auto group = id - static_cast<std::uint32_t>(channels_.size());
  if (group_is_inside_[group] != 0) return inside_ended(group, end);
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

}  // namespace orrery::models::traffic
