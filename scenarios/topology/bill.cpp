#include "scenarios/topology/bill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "models/network/fabric/fabric_graph.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using hardware::FabricKind;

int divided_up(double count, double by) {
  return static_cast<int>(std::ceil(count / by - 1e-9));
}

/// Switches that are joined by the level above, by their numbers.
using Pod = std::vector<std::size_t>;

class TreeBill {
 public:
  explicit TreeBill(const hardware::Cluster& cluster)
      : fabric_{cluster.fabric}, nodes_{cluster.nodes}, nics_{cluster.node.nics} {
    bill_.radix = fabric_.leaf.ports;
    const double ports = ratio(fabric_.leaf.bandwidth, cluster.nic_bandwidth());
    if (bill_.radix > 0) split_ = std::max(1.0, std::floor(ports + 1e-9));
    nic_rate_ = cluster.nic_bandwidth();
    // Stated spines have a cable of a NIC's rate to each leaf; others are a port wide.
    up_ports_ = fabric_.tree.spines > 0 ? 1 / split_ : 1;
  }

  FabricBill run() {
    std::vector<Pod> pods = add_leaves();
    if (fabric_.tree.levels == 1) return std::move(bill_);
    Pod above;
    for (std::size_t p = 0; p < pods.size(); ++p) {
      const bool cores = fabric_.tree.levels == 3 && pods.size() > 1;
      const Pod spines = add_spines(pods[p], pods.size() > 1 ? prefix(p) : "", cores);
      above.insert(above.end(), spines.begin(), spines.end());
    }
    if (fabric_.tree.levels == 3 && pods.size() > 1) join(above, above_, usable(), "core", 2, "");
    return std::move(bill_);
  }

 private:
  /// Ports of one switch; without a known number there is always room.
  double usable() const { return bill_.radix > 0 ? bill_.radix : std::numeric_limits<int>::max(); }
  std::string prefix(std::size_t pod) const {
    return fmt::format("{}{}/", fabric_.kind == FabricKind::rail_only ? "rail" : "pod", pod);
  }

  /// NICs that one leaf takes: as the shape says, but no more than its ports allow with the cables
  /// up that these need.
  int leaf_room() const {
    const bool rails = hardware::has_rails(fabric_.kind);
    const int stated = fabric_.nodes_per_leaf * (rails ? 1 : nics_);
    if (bill_.radix == 0) return stated;
    const double r = fabric_.oversubscription, p = bill_.radix;
    double most = std::floor(p * r / (1 + r) + 1e-9) * split_;
    if (fabric_.tree.spines > 0) most = (p - divided_up(fabric_.tree.spines, split_)) * split_;
    if (fabric_.tree.levels == 1) most = p * split_;
    return std::max(1, std::min(stated, static_cast<int>(most)));
  }

  std::size_t add_leaf(const std::string& name, const std::vector<std::size_t>& nics) {
    const std::size_t leaf = bill_.switches.size();
    const int down = divided_up(static_cast<double>(nics.size()), split_);
    bill_.switches.push_back({"leaf", name, 0, static_cast<double>(down)});
    for (const std::size_t nic : nics) bill_.cables.push_back({nic, 0, leaf, 1, nic_rate_});
    const int spines = fabric_.tree.spines;
    up_.push_back(spines > 0 ? spines : divided_up(down, fabric_.oversubscription));
    return leaf;
  }

  /// Leaves with their NICs, by the pods that they belong to.
  std::vector<Pod> add_leaves() {
    return hardware::has_rails(fabric_.kind) ? add_rails() : add_nodes();
  }

  Pod& pod_of(std::vector<Pod>& pods, std::size_t leaf) const {
    const bool several = fabric_.tree.levels == 3 && fabric_.tree.leaves_per_pod > 0;
    const std::size_t pod =
        several ? leaf / static_cast<std::size_t>(fabric_.tree.leaves_per_pod) : 0;
    pods.resize(std::max(pods.size(), pod + 1));
    return pods[pod];
  }

  std::vector<Pod> add_nodes() {
    std::vector<Pod> pods;
    const auto all = static_cast<std::size_t>(nodes_) * static_cast<std::size_t>(nics_);
    const auto room = static_cast<std::size_t>(leaf_room());
    for (std::size_t first = 0, leaf = 0; first < all; first += room, ++leaf) {
      std::vector<std::size_t> nics;
      for (std::size_t nic = first; nic < std::min(all, first + room); ++nic) nics.push_back(nic);
      pod_of(pods, leaf).push_back(add_leaf(fmt::format("leaf{}", leaf), nics));
    }
    return pods;
  }

  /// A unit of nodes has a leaf for each rail, or for several where these have few nodes.
  std::vector<Pod> add_rails() {
    std::vector<Pod> pods;
    const int room = leaf_room();
    const bool apart = fabric_.kind == FabricKind::rail_only;
    for (int first = 0, unit = 0; first < nodes_; first += room, ++unit) {
      const int nodes = std::min(room, nodes_ - first);
      const int together = apart ? 1 : std::min(nics_, std::max(1, room / nodes));
      for (int rail = 0; rail < nics_; rail += together) {
        const int last = std::min(nics_, rail + together) - 1;
        std::vector<std::size_t> nics;
        for (int node = first; node < first + nodes; ++node) {
          for (int nic = rail; nic <= last; ++nic) {
            nics.push_back(static_cast<std::size_t>(node) * static_cast<std::size_t>(nics_) +
                           static_cast<std::size_t>(nic));
          }
        }
        const std::string of =
            last > rail ? fmt::format("rails{}-{}", rail, last) : fmt::format("rail{}", rail);
        const std::size_t leaf = add_leaf(fmt::format("{}/leaf{}", of, unit), nics);
        if (apart) pods.resize(static_cast<std::size_t>(nics_));
        Pod& pod = apart ? pods[static_cast<std::size_t>(rail)]
                         : pod_of(pods, static_cast<std::size_t>(unit * nics_ + rail));
        pod.push_back(leaf);
      }
    }
    return pods;
  }

  /// Spines over the leaves of a pod; none over a single leaf without other pods.
  Pod add_spines(const Pod& leaves, const std::string& prefix, bool cores) {
    if (leaves.size() == 1 && !cores) return {};
    const double r = fabric_.tree.oversubscription_above;
    const double down =
        cores && bill_.radix > 0 ? std::floor(usable() * r / (1 + r) + 1e-9) : usable();
    const Pod spines = join(leaves, up_, down, "spine", 1, prefix);
    for (const std::size_t spine : spines) {
      above_.resize(spine + 1, 0);
      above_[spine] =
          fabric_.tree.cores > 0 ? fabric_.tree.cores : divided_up(bill_.switches[spine].ports, r);
    }
    return spines;
  }

  /// Adds the fewest switches of `room` ports each to which these switches' cables up lead, dealt
  /// out in turn. With an unknown number of ports every switch below has one cable to each.
  Pod join(const Pod& below, const std::vector<int>& up, double room, const char* kind, int level,
           const std::string& prefix) {
    int total = 0, widest = 0;
    for (const std::size_t each : below) {
      total += up[each];
      widest = std::max(widest, up[each]);
    }
    const double ports = level == 1 ? up_ports_ : 1;
    const bool stated = level == 1 && fabric_.tree.spines > 0;
    const int count =
        stated || bill_.radix == 0 ? widest : std::max(1, divided_up(total * ports, room));
    // Two leaves that reach over half of the spines have one in common.
    if (level == 1 && bill_.radix > 0 && count > 1 && 2 * widest <= count) note_missing_level();
    Pod above;
    for (int i = 0; i < count; ++i) {
      above.push_back(bill_.switches.size());
      bill_.switches.push_back({kind, fmt::format("{}{}{}", prefix, kind, i), level, 0});
    }
    std::size_t next = 0;
    for (const std::size_t each : below) {
      std::map<std::size_t, int> trunks;
      for (int cable = 0; cable < up[each]; ++cable) ++trunks[above[next++ % above.size()]];
      for (const auto& [to, cables] : trunks) {
        bill_.cables.push_back({std::nullopt, each, to, cables, nic_rate_ * (split_ * ports)});
        bill_.switches[each].ports += cables * ports;
        bill_.switches[to].ports += cables * ports;
      }
    }
    return above;
  }

  void note_missing_level() {
    bill_.note = fmt::format(
        "{} levels of switches with {} ports are too few for {} NICs: some leaves have no spine in "
        "common",
        fabric_.tree.levels, bill_.radix, std::int64_t{nodes_} * nics_);
  }

  const hardware::ClusterFabric& fabric_;
  int nodes_, nics_;
  double split_ = 1;     // NICs at one port of a switch
  double up_ports_ = 1;  // of a leaf and a spine, for one cable between them
  Bandwidth nic_rate_;
  FabricBill bill_;
  std::vector<int> up_, above_;  // cables up, by leaf; by spine
};

/// Routers of a dragonfly, torus or mesh as they are simulated. A dragonfly of one group has only
/// those that its nodes need.
FabricBill routers_of(const hardware::Cluster& cluster) {
  const models::FabricGraph graph{cluster};
  const auto& links = graph.topology().links();
  const Tier& tier = graph.tiers().front();
  const bool grid = cluster.fabric.kind != FabricKind::dragonfly;
  std::size_t routers = tier.groups * tier.each;
  if (!grid && tier.groups == 1) {
    routers = static_cast<std::size_t>(divided_up(cluster.nodes, cluster.fabric.nodes_per_leaf));
  }
  FabricBill bill;
  if (!grid) bill.radix = cluster.fabric.leaf.ports;
  const auto number = [&](Vertex vertex) { return index(vertex) - tier.first; };
  for (std::size_t r = 0; r < routers; ++r) {
    const Vertex vertex{static_cast<std::uint32_t>(tier.first + r)};
    bill.switches.push_back({"router", graph.name(vertex), 0, 0});
  }
  for (std::size_t port = 0; port < graph.ports(); ++port) {
    const std::size_t to = number(links[index(graph.out_of(port))].to);
    bill.cables.push_back({port, 0, to, 1, cluster.nic_bandwidth()});
    ++bill.switches[to].ports;
  }
  std::map<std::pair<std::size_t, std::size_t>, int> trunks;
  const int each = grid ? cluster.fabric.direct.cables : 1;
  for (const auto& link : links) {
    if (index(link.from) < tier.first || !(link.from < link.to)) continue;
    if (number(link.to) < routers) trunks[{number(link.from), number(link.to)}] += each;
  }
  for (const auto& [ends, count] : trunks) {
    bill.cables.push_back({std::nullopt, ends.first, ends.second, count, cluster.nic_bandwidth()});
    bill.switches[ends.first].ports += count;
    bill.switches[ends.second].ports += count;
  }
  return bill;
}

}  // namespace

FabricBill bill_of(const hardware::Cluster& cluster) {
  ensure(cluster.fabric.kind != FabricKind::none && cluster.node.nics > 0,
         "a bill is of a cluster with a network");
  return hardware::is_tree(cluster.fabric.kind) ? TreeBill{cluster}.run() : routers_of(cluster);
}

}  // namespace orrery::scenarios
