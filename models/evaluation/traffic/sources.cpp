#include "models/evaluation/traffic/sources.hpp"

#include <algorithm>
#include <utility>

#include "models/evaluation/traffic/block_collectives.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

constexpr double widest = 0x1p50;  // byte/s: more than the ports of any cluster send together

}  // namespace

WireRate wire_rate(Bandwidth bandwidth) {
  ensure(bandwidth.count() >= 1, "a link carries a possible rate");
  return static_cast<WireRate>(std::min(bandwidth.count(), widest) * 0x1p12);
}

Bandwidth bandwidth_of(WireRate rate) {
  return Bandwidth{static_cast<double>(rate) * 0x1p-12};
}

RankPlacement contiguous(std::size_t ranks, std::uint32_t gpus_per_node) {
  RankPlacement placement;
  placement.gpus_per_node = gpus_per_node;
  placement.devices.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) placement.devices[r] = static_cast<std::uint32_t>(r);
  return placement;
}

namespace traffic {

FluidWire wire_of(LinkTimes links) {
  const Time fluid = links.fluid();
  return fluid == Time{} ? FluidWire{} : FluidWire{fluid, ratio(links.nic, fluid)};
}

namespace {

class SourceMaker {
 public:
  SourceMaker(const PricedProgram& priced, const NetworkSite& site, std::uint32_t rails)
      : priced_{priced},
        program_{*priced.program},
        site_{site},
        counter_{site},
        number_of_link_(site.links.size(), 0) {
    const Mesh& mesh = program_.mesh;
    found_.rails = rails;
    found_.tensor = static_cast<std::uint32_t>(mesh.degree(MeshAxis::tensor)) / rails;
    found_.replicas = static_cast<std::uint32_t>(mesh.stage_ranks()) / rails;
    found_.ranks = static_cast<std::uint32_t>(program_.classes.size()) * found_.replicas;
    ensure(site.placement.devices.size() == std::size_t{found_.ranks} * rails,
           "a placement has every rank");
  }

  JobSources run() {
    for (std::uint32_t c = 0; c < program_.channels.size(); ++c) add_channel(c);
    found_.channels = found_.all.size();
    add_splits();
    if (block_collectives_differ(priced_, site_)) add_inside();
    for (std::uint32_t s = 0; s < found_.splits.size(); ++s) add_groups(s);
    return std::move(found_);
  }

 private:
  /// The device of a rank; its replica number within the stage is that of its mesh coordinates.
  std::uint32_t device(std::uint32_t rank) const {
    const auto stage = program_.classes[rank / found_.replicas].stage;
    const std::size_t place =
        static_cast<std::size_t>(stage) * found_.replicas + rank % found_.replicas;
    return site_.placement.devices[place * found_.rails];
  }
  FlowCounter::End end_of(std::uint32_t rank) const {
    const std::uint32_t at = device(rank);
    const std::uint32_t gpu = at % site_.placement.gpus_per_node;
    return {at / site_.placement.gpus_per_node, site_.port_of(gpu), gpu};
  }

  void add_channel(std::uint32_t c) {
    const Channel& channel = program_.channels[c];
    FlowShape shape{.pattern = TrafficPattern::pair};
    if (!priced_.channel_links.empty()) shape.share = wire_of(priced_.channel_links[c]).share;
    if (!priced_.channel_flows.empty()) shape.flows = priced_.channel_flows[c];
    for (std::uint32_t replica = 0; replica < found_.replicas; ++replica) {
      begin({.id = c, .group = false},
            {channel.from * found_.replicas + replica, channel.to * found_.replicas + replica});
      finish(shape);
    }
  }

  void add_splits() {
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      const JointCollective& joint = program_.collectives[j];
      const PricedOperation& price = priced_.collectives[j];
      CommunicatorSplit made;
      made.communicator = joint.communicator;
      made.classes = joint.classes;
      std::ranges::sort(made.classes);
      const auto same = [&](const CommunicatorSplit& each) {
        return each.communicator == made.communicator && each.classes == made.classes;
      };
      auto at = std::ranges::find_if(found_.splits, same);
      if (at == found_.splits.end()) at = found_.splits.insert(at, made);
      if (price.fluid > Time{}) widen(at->shape, price);
      // Norm reductions are a few bytes over all stages: a tree would only make equal ranks differ.
      const AxisSet axes = program_.communicators.at(joint.communicator).axes;
      if (axes.has(MeshAxis::pipeline)) at->shape.pattern = TrafficPattern::ring;
      found_.split_of_joint.push_back(static_cast<std::uint32_t>(at - found_.splits.begin()));
    }
  }

  /// Where collectives of one split differ, the one that uses the largest share of its ports
  /// counts.
  static void widen(FlowShape& shape, const PricedOperation& price) {
    const double share = wire_of(price.links).share;
    if (share <= shape.share) return;
    shape = {price.pattern, price.flows, share};
  }

  void add_inside() {
    const BlockCollectiveKinds kinds = block_collective_kinds(priced_);
    found_.block_collectives = kinds.of_operations;
    const auto count = kinds.all.size();
    found_.block_collectives.splits.assign(program_.classes.size() * count, no_kind);
    for (const auto& [c, kind] : kinds.used) {
      found_.block_collectives.splits[c * count + kind] =
          static_cast<std::uint32_t>(found_.splits.size());
      found_.splits.push_back({kinds.all[kind].communicator, {c}, true, kinds.all[kind].shape});
    }
  }

  void add_groups(std::uint32_t s) {
    CommunicatorSplit& split = found_.splits[s];
    const auto& groups = groups_along(program_.communicators.at(split.communicator).axes);
    split.everyone = groups.size() == 1 && split.classes.size() == program_.classes.size();
    for (const std::vector<std::uint32_t>& group : groups) {
      std::vector<std::uint32_t> members;
      for (const std::uint32_t c : split.classes) {
        for (const std::uint32_t each : group) members.push_back(c * found_.replicas + each);
      }
      begin({.id = s, .group = true}, members);
      finish(split.shape);
    }
  }

  /// Groups of one stage's replicas along these axes; only of the first rail where that stands for
  /// all.
  const std::vector<std::vector<std::uint32_t>>& groups_along(AxisSet axes) {
    axes = axes.without(MeshAxis::pipeline);
    const auto same = [&](const auto& each) { return each.first == axes; };
    const auto at = std::ranges::find_if(groups_, same);
    if (at != groups_.end()) return at->second;
    std::vector<std::vector<std::uint32_t>> groups;
    std::vector<char> seen(found_.replicas, 0);
    for (std::uint32_t replica = 0; replica < found_.replicas; ++replica) {
      if (seen[replica] != 0) continue;
      std::vector<std::uint32_t>& group = groups.emplace_back();
      for (const std::int64_t each : site_.placement.order.members(
               program_.mesh, std::int64_t{replica} * found_.rails, axes)) {
        if (each % found_.rails != 0) continue;
        group.push_back(static_cast<std::uint32_t>(each) / found_.rails);
        seen[group.back()] = 1;
      }
    }
    return groups_.emplace_back(axes, std::move(groups)).second;
  }

  void begin(TrafficSource each, const std::vector<std::uint32_t>& members) {
    each.first_member = static_cast<std::uint32_t>(found_.members.size());
    each.members = static_cast<std::uint32_t>(members.size());
    each.first_flow = static_cast<std::uint32_t>(found_.flows.size());
    found_.members.insert(found_.members.end(), members.begin(), members.end());
    found_.all.push_back(each);
  }

  /// Sets rate and links of the source begun last.
  void finish(const FlowShape& shape) {
    TrafficSource& each = found_.all.back();
    if (shape.share <= 0) return;
    ends_.clear();
    for (const std::uint32_t rank : found_.members_of(each)) ends_.push_back(end_of(rank));
    counter_.count(ends_, shape.pattern, static_cast<std::uint32_t>(std::max(1, shape.flows)),
                   found_.all.size());
    if (counter_.found().empty()) return;
    const double rate = static_cast<double>(wire_rate(site_.port)) * shape.share;
    each.wire = static_cast<WireRate>(rate / counter_.busiest());
    for (const LinkFlows& flows : counter_.found()) {
      found_.flows.push_back({number_of(flows.link), flows.flows});
      ++each.flows;
    }
  }

  std::uint32_t number_of(std::uint32_t link) {
    std::uint32_t& number = number_of_link_[link];
    if (number == 0) {
      found_.links.push_back(link);
      number = static_cast<std::uint32_t>(found_.links.size());
    }
    return number - 1;
  }

  const PricedProgram& priced_;
  const Program& program_;
  const NetworkSite& site_;
  JobSources found_;
  FlowCounter counter_;
  std::vector<FlowCounter::End> ends_;
  std::vector<std::pair<AxisSet, std::vector<std::vector<std::uint32_t>>>> groups_;
  std::vector<std::uint32_t> number_of_link_;  // from 1; 0: nothing crosses it
};

}  // namespace

namespace {

/// Does every group hold whole tensor groups, or one rank of each? Groups along axes of the dense
/// view do; replicas of experts may hold part of a tensor group.
bool groups_keep_to_rails(const Program& program) {
  for (const JointCollective& joint : program.collectives) {
    const AxisSet along = program.communicators.at(joint.communicator).axes;
    for (const AxisRow& each : axes) {
      const bool of_experts = each.view == MeshView::experts && along.has(each.axis);
      if (of_experts && program.mesh.degree(each.axis) > 1) return false;
    }
  }
  return true;
}

}  // namespace

std::uint32_t rails_of(const PricedProgram& priced, const NetworkSite& site) {
  const RankPlacement& placement = site.placement;
  const std::uint32_t rails = site.ports_per_node;
  const Mesh& mesh = priced.program->mesh;
  if (!site.rails_alike || !site.changes.empty() || placement.gpus_per_node != rails) return 1;
  if (!site.inside.empty()) return 1;
  if (mesh.degree(MeshAxis::tensor) != rails || block_collectives_differ(priced, site)) return 1;
  if (!groups_keep_to_rails(*priced.program)) return 1;
  for (std::uint32_t gpu = 0; gpu < site.nearest.size(); ++gpu) {
    if (site.nearest[gpu] != gpu) return 1;
  }
  for (std::size_t r = 0; r < placement.devices.size(); ++r) {
    const std::size_t first = r - r % rails;
    if (placement.devices[r] != placement.devices[first] + r % rails) return 1;
    if (placement.gpu(first) != 0) return 1;
    if (!site.speeds.empty() && site.speeds[r] != site.speeds[first]) return 1;
  }
  return rails;
}

void AllSources::add(JobSources job, std::vector<double> speeds_of_job) {
  for (LinkFlows& flows : job.flows) {
    const std::uint32_t link = job.links[flows.link];
    if (number_of_link_.size() <= link) number_of_link_.resize(std::size_t{link} + 1, 0);
    std::uint32_t& number = number_of_link_[link];
    if (number == 0) {
      links.push_back(link);
      number = static_cast<std::uint32_t>(links.size());
    }
    flows.link = number - 1;
  }
  first_rank.push_back(first_rank.back() + job.ranks);
  first_source.push_back(first_source.back() + static_cast<std::uint32_t>(job.all.size()));
  jobs.push_back(std::move(job));
  speeds.push_back(std::move(speeds_of_job));
}

JobSources sources_of(const PricedProgram& priced, const NetworkSite& site, std::uint32_t rails) {
  return SourceMaker{priced, site, rails}.run();
}

}  // namespace traffic

Time fluid_of_channel(const PricedProgram& priced, std::uint32_t channel) {
  if (priced.channel_links.empty()) return Time{};
  return std::min(priced.channel_links[channel].fluid(), priced.channels[channel]);
}

}  // namespace orrery::models
