#include "models/pricing/wire.hpp"

#include <algorithm>
#include <utility>

#include "models/pricing/price.hpp"

namespace orrery::models {

namespace {

LinkTimes stretched(LinkTimes links, double factor) {
  return {.nic = scaled(links.nic, factor), .nvlink = scaled(links.nvlink, factor)};
}

/// No link is full for longer than the transfer takes.
LinkTimes within(LinkTimes links, Time time) {
  return {.nic = std::min(links.nic, time), .nvlink = std::min(links.nvlink, time)};
}

}  // namespace

WirePricer::WirePricer(const Program& program, const hardware::Cluster& cluster,
                       const Software& software, WirePlaces places)
    : program_{program}, cluster_{cluster}, software_{software}, places_{std::move(places)} {
  for (const Communicator& each : program.communicators) {
    groups_.push_back(shape_of(program.mesh, each, cluster.node.gpus, places_.order));
  }
}

CollectiveTime WirePricer::modelled(Collective kind, Bytes bytes,
                                    std::uint16_t communicator) const {
  const GroupShape group = kind == Collective::send_receive
                               ? shape_of(program_.mesh, program_.communicators[communicator], kind,
                                          cluster_.node.gpus, places_.order)
                               : groups_[communicator];
  return price(kind, bytes, group, cluster_, {.sharing = places_.sharing, .nccl = places_.nccl});
}

CollectivePricing pricing_of(const TokenCopies& copies, const GroupShape& group,
                             const WirePlaces& places) {
  CollectivePricing pricing{.sharing = places.sharing, .nccl = places.nccl, .copies = copies};
  if (copies.each > 0 && group.nodes > 1) pricing.choice.algorithm = "deduplicating";
  return pricing;
}

/// Time of a collective that moves rows between ranks and their experts.
CollectiveTime WirePricer::dispatched(const Operation& op) const {
  const GroupShape& group = groups_[op.communicator()];
  const CollectivePricing pricing = pricing_of(op.exchange().deduplicated, group, places_);
  if (group.nodes == 1 || op.exchange().deduplicated.each > 0) {
    return price(op.collective(), op.bytes, group, cluster_, pricing);
  }
  // An algorithm of the collective library, at the share of the NICs' rate that it reaches.
  CollectiveTime whole = price(op.collective(), op.bytes, group, cluster_, pricing);
  const double slower = 1 / software_.overlap.dispatch_efficiency;
  whole.time = scaled(whole.time, slower);
  whole.links = stretched(whole.links, slower);
  return whole;
}

PricedOperation WirePricer::in_block(const Operation& op) const {
  const CommunicatorRole role = program_.role_of(op.communicator());
  const CollectiveTime whole = role == CommunicatorRole::expert
                                   ? dispatched(op)
                                   : modelled(op.collective(), op.bytes, op.communicator());
  PricedOperation priced;
  priced.links = whole.links;
  // Messages from every rank to the next are a ring.
  priced.pattern = whole.pattern == TrafficPattern::pair ? TrafficPattern::ring : whole.pattern;
  priced.flows = std::max(1, whole.flows);
  if (role != CommunicatorRole::tensor) {
    priced.duration = whole.time;
    priced.fluid = std::min(whole.time, whole.links.fluid());
    return priced;
  }
  const double shown = software_.overlap.tensor_exposed;
  // User buffers overlap the collectives of the frozen layer, not those of its adapter.
  // Source  NVIDIA-NeMo/Megatron-Bridge, peft/utils.py, ParallelLinearAdapter
  const bool overlaps = program_.overlaps_tensor && !op.module.adapter;
  const double exposed = overlaps ? shown : std::max(1.0, shown);
  priced.duration = scaled(whole.time, exposed);
  priced.fluid = std::min(priced.duration, scaled(whole.links.fluid(), exposed));
  const Time hidden = std::max(Time{}, whole.time - priced.duration);
  (op.collective() == Collective::all_gather ? priced.trail : priced.lead) = hidden;
  return priced;
}

/// Data-parallel traffic runs at the share of the cost model's rate that the stack reaches; where
/// owners broadcast their shards one after another, the time depends on their number instead.
PricedOperation WirePricer::joint(const JointCollective& joint) const {
  const CollectiveTime whole = modelled(joint.kind, joint.bytes, joint.communicator);
  PricedOperation priced = joint_of(joint, whole);
  priced.pattern = whole.pattern;
  priced.flows = std::max(1, whole.flows);
  return priced;
}

PricedOperation WirePricer::joint_of(const JointCollective& joint,
                                     const CollectiveTime& whole) const {
  const Overlap& overlap = software_.overlap;
  if (!of_replicas(program_.role_of(joint.communicator))) {
    return {.duration = whole.time, .links = whole.links, .fluid = whole.links.fluid()};
  }
  if (joint.kind == Collective::broadcast && overlap.broadcast_per_rank > Time{}) {
    const std::int64_t ranks = groups_[joint.communicator].ranks;
    const std::int64_t most = overlap.broadcast_group;
    const Time in_turn = overlap.broadcast_per_rank * (most > 0 ? std::min(ranks, most) : ranks);
    const LinkTimes links = within(whole.links, in_turn);
    return {.duration = in_turn, .links = links, .fluid = links.fluid()};
  }
  const bool overlaps =
      joint.gathers_parameters ? program_.overlaps_gathers : program_.overlaps_data;
  const double exposed = overlaps ? overlap.data_exposed : std::max(1.0, overlap.data_exposed);
  const Time shown = scaled(whole.time, exposed / overlap.data_efficiency);
  return {.duration = shown + sums_time(joint) + fetch_time(joint),
          .lead = scaled(whole.time, 1 / overlap.data_efficiency) - shown,
          .links = stretched(whole.links, 1 / overlap.data_efficiency),
          .fluid = std::min(shown, scaled(whole.links.fluid(), exposed / overlap.data_efficiency))};
}

/// Time to fetch the rank's piece from the host before a gather; from files it comes in pieces, as
/// fast as the slower of link and drives.
Time WirePricer::fetch_time(const JointCollective& joint) const {
  if (joint.from_host == Bytes{}) return Time{};
  const Time link = joint.from_host / cluster_.gpu().host_link;
  if (!program_.sharding.in_files) return link;
  return std::max(link, file_time(joint.from_host, FileUse::read, program_, cluster_));
}

/// Time to add the reduced piece to the shard of sums: a memory-bound kernel on the reduction's
/// queue.
Time WirePricer::sums_time(const JointCollective& joint) const {
  if (joint.accumulate_traffic == Bytes{}) return Time{};
  Operation add;
  add.kind = OpKind::add;
  add.dtype = joint.dtype;
  add.bytes = joint.accumulate_traffic;
  return kernel_time(add, cluster_.gpu(), software_);
}

Time file_time(Bytes bytes, FileUse use, const Program& program, const hardware::Cluster& cluster) {
  const std::int64_t ranks = std::min<std::int64_t>(program.mesh.ranks(), cluster.node.gpus);
  const hardware::Storage& storage = cluster.storage;
  return bytes * ranks / (use == FileUse::read ? storage.read : storage.write).value();
}

CollectiveTime WirePricer::channel(const Channel& channel) const {
  if (channel.from == channel.to) return {};  // the next chunk is on the same rank
  CollectiveTime priced = modelled(Collective::send_receive, channel.bytes, channel.communicator);
  if (groups_[channel.communicator].nodes == 1 || crosses_nodes(channel)) return priced;
  GroupShape inside = groups_[channel.communicator];
  inside.nodes = 1;
  inside.ranks_per_node = inside.ranks;
  const CollectiveTime own = price(Collective::send_receive, channel.bytes, inside, cluster_,
                                   {.sharing = places_.sharing, .nccl = places_.nccl});
  priced.links = within(own.links, priced.time);
  return priced;
}

/// Is any pair of its two stages' ranks on two nodes?
bool WirePricer::crosses_nodes(const Channel& channel) const {
  const Mesh& mesh = program_.mesh;
  const std::int64_t stage = mesh.stage_ranks(), node = cluster_.node.gpus;
  if (stage >= node && places_.order.usual()) return true;
  const std::int64_t from = mesh.first_rank(program_.classes[channel.from].stage);
  const std::int64_t to = mesh.first_rank(program_.classes[channel.to].stage);
  for (std::int64_t i = 0; i < stage; ++i) {
    const std::int64_t sender = places_.order.place(mesh, from + i);
    if (sender / node != places_.order.place(mesh, to + i) / node) return true;
  }
  return false;
}

void carry_gathers(PricedProgram& priced) {
  const Program& program = *priced.program;
  priced.carried.assign(program.classes.size(), Time{});
  for (std::size_t j = 0; j < program.collectives.size(); ++j) {
    const JointCollective& joint = program.collectives[j];
    if (!joint.hidden_in_next_step) continue;
    Time& hidden = priced.collectives[j].lead;
    for (const std::uint32_t c : joint.classes) priced.carried[c] += hidden;
    hidden = Time{};
  }
}

}  // namespace orrery::models
