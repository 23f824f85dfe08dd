#include "models/evaluation/traffic/templates.hpp"

#include <algorithm>
#include <cmath>

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
namespace {

/// What a transfer takes at full rate, and the share of its ports' line rate that it then has: less
/// than all where links inside the node are slower.
struct FluidWire {
  Time fluid{};
  double share = 0;
};

FluidWire wire_of(LinkTimes links) {
  if (links.nic <= Time{}) return {};
  const Time fluid = std::max(links.nic, links.nvlink);
  return {fluid, ratio(links.nic, fluid)};
}

class EntityMaker {
 public:
  EntityMaker(const PricedProgram& priced, const NetworkSite& site, std::uint32_t rails)
      : priced_{priced},
        program_{*priced.program},
        site_{site},
        number_of_link_(site.links.size(), 0) {
    const Mesh& mesh = program_.mesh;
    found_.rails = rails;
    found_.tensor = static_cast<std::uint32_t>(mesh.degree(MeshAxis::tensor)) / rails;
    found_.replicas = static_cast<std::uint32_t>(mesh.stage_ranks()) / rails;
    found_.ranks = static_cast<std::uint32_t>(program_.classes.size()) * found_.replicas;
    ensure(site.placement.devices.size() == std::size_t{found_.ranks} * rails,
           "a placement has every rank");
  }

  Entities run() {
    for (std::uint32_t c = 0; c < program_.channels.size(); ++c) add_channel(c);
    found_.channels = found_.all.size();
    add_structures();
    for (std::uint32_t s = 0; s < found_.structures.size(); ++s) add_groups(s);
    return std::move(found_);
  }

 private:
  /// Mesh coordinates of a stage number its replicas.
  std::uint32_t device(std::uint32_t rank) const {
    const auto stage = program_.classes[rank / found_.replicas].stage;
    const std::size_t place =
        static_cast<std::size_t>(stage) * found_.replicas + rank % found_.replicas;
    return site_.placement.devices[place * found_.rails];
  }
  std::uint32_t node(std::uint32_t rank) const {
    return device(rank) / site_.placement.gpus_per_node;
  }
  /// The port next to a rank's GPU; of several, the first.
  std::uint32_t near_port(std::uint32_t rank) const {
    const std::uint32_t gpu = device(rank) % site_.placement.gpus_per_node;
    if (!site_.nearest.empty()) return site_.nearest[gpu];
    return gpu * site_.ports_per_node / site_.placement.gpus_per_node;
  }

  void add_channel(std::uint32_t c) {
    const Channel& channel = program_.channels[c];
    const FluidWire wire =
        priced_.channel_links.empty() ? FluidWire{} : wire_of(priced_.channel_links[c]);
    for (std::uint32_t replica = 0; replica < found_.replicas; ++replica) {
      begin({.id = c, .group = false},
            {channel.from * found_.replicas + replica, channel.to * found_.replicas + replica});
      finish(wire.share, false);
    }
  }

  void add_structures() {
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      const JointCollective& joint = program_.collectives[j];
      GroupStructure made{joint.communicator, joint.classes};
      std::sort(made.classes.begin(), made.classes.end());
      const auto same = [&](const GroupStructure& each) {
        return each.communicator == made.communicator && each.classes == made.classes;
      };
      auto at = std::find_if(found_.structures.begin(), found_.structures.end(), same);
      if (at == found_.structures.end()) at = found_.structures.insert(at, made);
      if (priced_.collectives[j].fluid > Time{}) {
        at->wire = std::max(at->wire, wire_of(priced_.collectives[j].links).share);
      }
      found_.structure_of_joint.push_back(
          static_cast<std::uint32_t>(at - found_.structures.begin()));
    }
  }

  void add_groups(std::uint32_t s) {
    GroupStructure& structure = found_.structures[s];
    const AxisSet axes = program_.communicators.at(structure.communicator).axes;
    const bool tensor = axes.has(MeshAxis::tensor), data = axes.has(MeshAxis::data);
    const std::uint32_t t = found_.tensor, d = found_.replicas / t;
    structure.everyone = tensor && data && structure.classes.size() == program_.classes.size();
    for (std::uint32_t root = 0; root < found_.replicas; ++root) {
      if ((tensor && root % t > 0) || (data && root / t > 0)) continue;
      std::vector<std::uint32_t> members;
      for (const std::uint32_t c : structure.classes) {
        for (std::uint32_t i = 0; i < (data ? d : 1); ++i) {
          for (std::uint32_t k = 0; k < (tensor ? t : 1); ++k) {
            members.push_back(c * found_.replicas + root + i * t + k);
          }
        }
      }
      begin({.id = s, .group = true}, members);
      finish(structure.wire, true);
    }
  }

  void begin(Entity each, const std::vector<std::uint32_t>& members) {
    each.first_member = static_cast<std::uint32_t>(found_.members.size());
    each.members = static_cast<std::uint32_t>(members.size());
    each.first_flow = static_cast<std::uint32_t>(found_.flows.size());
    found_.members.insert(found_.members.end(), members.begin(), members.end());
    found_.all.push_back(each);
  }

  /// Ports and links of the last one begun.
  void finish(double share, bool ring) {
    Entity& each = found_.all.back();
    if (share <= 0) return;
    collect_nodes(found_.members_of(each));
    if (nodes_.size() < 2) return;
    each.wire = static_cast<WireRate>(static_cast<double>(wire_rate(site_.port)) * share);
    choose_ports();
    crossed_.clear();
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) add_edge(i, i + 1);
    if (ring) add_edge(nodes_.size() - 1, 0);
    std::sort(crossed_.begin(), crossed_.end());
    for (const std::uint32_t link : crossed_) {
      if (each.flows > 0 && found_.flows.back().link == link) {
        ++found_.flows.back().flows;
      } else {
        found_.flows.push_back({link, 1});
        ++each.flows;
      }
    }
  }

  std::uint32_t number_of(LinkId link) {
    std::uint32_t& number = number_of_link_[index(link)];
    if (number == 0) {
      found_.links.push_back(static_cast<std::uint32_t>(index(link)));
      number = static_cast<std::uint32_t>(found_.links.size());
    }
    return number - 1;
  }

  /// Nodes in the order in which members are first met on them, and the members of each.
  void collect_nodes(std::span<const std::uint32_t> members) {
    nodes_.clear();
    ports_.clear();
    for (const std::uint32_t rank : members) {
      const std::uint32_t at = node(rank);
      if (seen_.size() <= at) seen_.resize(at + 1, 0);
      if (seen_[at] == 0) {
        nodes_.push_back(at);
        seen_[at] = static_cast<std::uint32_t>(nodes_.size());
        if (ports_.size() < nodes_.size()) ports_.emplace_back();
      }
      ports_[seen_[at] - 1].push_back(near_port(rank));
    }
    for (const std::uint32_t at : nodes_) seen_[at] = 0;
  }

  /// As many ports on each node as the group's ranks have there, one at least: those next to them,
  /// and where several ranks are next to one, the ones after it.
  void choose_ports() {
    const std::uint32_t all = site_.ports_per_node;
    std::size_t fewest = ports_[0].size();
    for (const auto& each : ports_) fewest = std::min(fewest, each.size());
    const std::size_t of_rank = std::max<std::size_t>(1, all / site_.placement.gpus_per_node);
    const std::size_t wanted = std::min<std::size_t>(all, fewest * of_rank);
    for (std::vector<std::uint32_t>& each : ports_) {
      std::vector<std::uint32_t> chosen;
      for (std::size_t k = 0; chosen.size() < wanted; ++k) {
        std::uint32_t port = each[k % each.size()];
        while (std::find(chosen.begin(), chosen.end(), port) != chosen.end()) {
          port = (port + 1) % all;
        }
        chosen.push_back(port);
      }
      each = std::move(chosen);
    }
  }

  void add_edge(std::size_t from, std::size_t to) {
    for (std::size_t k = 0; k < ports_[from].size(); ++k) {
      const std::size_t out = std::size_t{nodes_[from]} * site_.ports_per_node + ports_[from][k];
      const std::size_t in = std::size_t{nodes_[to]} * site_.ports_per_node + ports_[to][k];
      site_.route(out, in, found_.all.size(), route_);
      for (const LinkId link : route_) crossed_.push_back(number_of(link));
    }
  }

  const PricedProgram& priced_;
  const Program& program_;
  const NetworkSite& site_;
  Entities found_;
  Route route_;
  std::vector<std::uint32_t> number_of_link_;  // from 1; 0: nothing crosses it
  std::vector<std::uint32_t> nodes_, crossed_;
  std::vector<std::uint32_t> seen_;                // by node: its place in nodes_, from 1
  std::vector<std::vector<std::uint32_t>> ports_;  // by place
};

}  // namespace

std::uint32_t rails_of(const PricedProgram& priced, const NetworkSite& site) {
  const RankPlacement& placement = site.placement;
  const std::uint32_t rails = site.ports_per_node;
  const auto tensor = priced.program->mesh.degree(MeshAxis::tensor);
  if (!site.rails_alike || !site.changes.empty() || placement.gpus_per_node != rails) return 1;
  if (tensor != rails) return 1;
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

Entities entities_of(const PricedProgram& priced, const NetworkSite& site, std::uint32_t rails) {
  return EntityMaker{priced, site, rails}.run();
}

}  // namespace traffic

Time fluid_of_channel(const PricedProgram& priced, std::uint32_t channel) {
  if (priced.channel_links.empty()) return Time{};
  return std::min(traffic::wire_of(priced.channel_links[channel]).fluid, priced.channels[channel]);
}

}  // namespace orrery::models
