// Evaluates a collective as one or two locked parts. All flows of a part move at the same rate,
// that of its most constrained flow, so that flows are counted per link instead of listed.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "models/network/collectives/rank_network.hpp"
#include "models/network/collectives/steps.hpp"
#include "sim/flows/max_min.hpp"

namespace orrery::models {
namespace {

using collectives::CostCall;
using collectives::RankNetwork;

/// A set of flows that move at one rate; LockedLink has how many of them cross a link.
struct LockedPart {
  Time begin{};        // when the flows start to use links
  double amount = 0;   // bytes of each flow, counted at the line rate of its NIC
  double fastest = 0;  // highest rate of one flow, in bytes per second
};

/// A class of equal links: the capacity of each, and how many flows of each part cross it.
struct LockedLink {
  double capacity = 0;
  std::array<std::uint64_t, 2> flows{};
};

using Parts = std::vector<LockedPart>;
using Rows = std::vector<LockedLink>;

/// The parts whose flows use links now, for the filling; its rates are in 2^-12 byte/s.
struct OpenParts {
  const Rows& rows;
  std::array<bool, 2> moving{};
  std::array<MaxMinFilling::Rate, 2> rates{};

  bool open(std::uint32_t part) const { return moving[part] && rates[part] == 0; }
  void stop(std::uint32_t part, MaxMinFilling::Rate rate, std::uint32_t = 0) { rates[part] = rate; }
  template <class Visit>
  void each_on(std::uint32_t row, Visit visit) const {
    for (std::uint32_t part = 0; part < 2; ++part) {
      if (rows[row].flows[part] > 0) visit(part);
    }
  }
  template <class Visit>
  void each_crossing(std::uint32_t part, Visit visit) const {
    for (std::uint32_t row = 0; row < rows.size(); ++row) visit(row, rows[row].flows[part]);
  }
};

/// The rate of one flow of each part, in bytes per second.
std::array<double, 2> rates_of(const Parts& parts, const Rows& rows,
                               const std::array<bool, 2>& active) {
  const auto counted = [](double rate) { return static_cast<MaxMinFilling::Rate>(rate * 0x1p12); };
  OpenParts open{rows, active};
  MaxMinFilling filling{ShareTies::exact};
  filling.begin(rows.size());
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    std::uint64_t flows = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) flows += active[p] ? rows[row].flows[p] : 0;
    if (flows > 0) filling.add_link(row, counted(rows[row].capacity), flows);
  }
  for (std::uint32_t p = 0; p < parts.size(); ++p) {
    if (active[p] && std::isfinite(parts[p].fastest)) filling.add_cap(p, counted(parts[p].fastest));
  }
  while (filling.rise(open) > 0) {
  }
  return {static_cast<double>(open.rates[0]) * 0x1p-12,
          static_cast<double>(open.rates[1]) * 0x1p-12};
}

/// Runs the parts to the end: the time at which the last one ends, and how often rates changed.
NetworkRun run_parts(const Parts& parts, const Rows& rows) {
  NetworkRun run{.transfers = parts.size()};
  run.memory = Bytes{static_cast<std::int64_t>(rows.capacity() * sizeof(LockedLink))};
  std::array<double, 2> left{};
  for (std::size_t p = 0; p < parts.size(); ++p) left[p] = parts[p].amount;
  double now = 0;
  while (true) {
    std::array<bool, 2> active{};
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const double begin = seconds(parts[p].begin);
      active[p] = left[p] > 0 && begin <= now;
      if (left[p] > 0 && begin > now) next = std::min(next, begin);
    }
    const auto rates = rates_of(parts, rows, active);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (active[p]) next = std::min(next, now + left[p] / rates[p]);
    }
    if (std::isinf(next)) break;
    ++run.events;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (!active[p]) continue;
      const double after = left[p] - rates[p] * (next - now);
      left[p] = now + left[p] / rates[p] <= next ? 0 : after;
    }
    now = next;
  }
  run.time = nearest_count<Time>(now * 1e12);
  for (const LockedPart& part : parts) run.time = std::max(run.time, part.begin);
  return run;
}

/// Counts the flows of each part on every link.
class FlowCounts {
 public:
  explicit FlowCounts(const FabricGraph& fabric) : fabric_{fabric}, counts_(fabric.links()) {}

  void add(const Route& route, std::size_t part, std::uint64_t flows) {
    for (const LinkId link : route) counts_[index(link)][part] += flows;
  }
  void add(LinkId link, std::size_t part, std::uint64_t flows) {
    counts_[index(link)][part] += flows;
  }

  /// One row per class of links with equal capacity and flows.
  Rows rows() const {
    std::set<std::tuple<double, std::uint64_t, std::uint64_t>> seen;
    Rows rows;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const auto& flows = counts_[i];
      if (flows[0] == 0 && flows[1] == 0) continue;
      const double capacity = fabric_.capacity(LinkId{static_cast<std::uint32_t>(i)}).count();
      if (!seen.emplace(capacity, flows[0], flows[1]).second) continue;
      rows.push_back({.capacity = capacity, .flows = flows});
    }
    return rows;
  }

 private:
  const FabricGraph& fabric_;
  std::vector<std::array<std::uint64_t, 2>> counts_;
};

/// Bytes of one flow: the price's transfer time at the rate that the flow occupies.
double amount_of(const CollectiveTime& alone) {
  return seconds(alone.fluid) * alone.wire.count();
}

/// Highest rate of one flow: that of its price where links inside nodes are the bottleneck.
double fastest_of(const CollectiveTime& alone) {
  const bool inside = ratio(alone.links.nic, alone.fluid) < 1 - 1e-9;
  return inside ? alone.wire.count() : std::numeric_limits<double>::infinity();
}

/// A ring or tree (every node sends to the next, on every NIC used), or one message.
NetworkRun run_edges(const RankNetwork& ranks, const CollectiveTime& alone, bool one_message,
                     int used) {
  FlowCounts counts{ranks.fabric()};
  const int nodes = ranks.nodes();
  for (int node = 0; node < (one_message ? 1 : nodes); ++node) {
    for (int nic = 0; nic < used; ++nic) {
      counts.add(ranks.rail(node, (node + 1) % nodes, nic), 0,
                 static_cast<std::uint64_t>(alone.flows));
    }
  }
  return run_parts({{.begin = alone.latency,
                     .amount = amount_of(alone),
                     .fastest = std::min(fastest_of(alone), alone.wire.count())}},
                   counts.rows());
}

/// Flows of a uniform all-to-all on each link: part 0 between ports of one leaf, part 1 between
/// leaves. Counted for each destination port, leaf by leaf, since routes depend on these only.
Rows pair_rows(const RankNetwork& ranks, int flows) {
  const FabricGraph& fabric = ranks.fabric();
  FlowCounts counts{fabric};
  std::vector<std::uint64_t> at_port(fabric.ports()), on_leaf(fabric.leaves());
  std::map<std::pair<std::size_t, int>, std::uint64_t> of_node;  // ranks by leaf and node
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const std::size_t port = ranks.port_of(rank);
    ++at_port[port];
    ++on_leaf[fabric.leaf_of(port)];
    ++of_node[{fabric.leaf_of(port), ranks.node_of(rank)}];
  }
  const auto own = [&](std::size_t leaf, int node) {
    const auto found = of_node.find({leaf, node});
    return found == of_node.end() ? std::uint64_t{0} : found->second;
  };
  Route route;
  std::vector<char> counted(fabric.ports());
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const std::size_t port = ranks.port_of(rank);
    if (counted[port]) continue;
    counted[port] = 1;
    for (std::size_t leaf = 0; leaf < fabric.leaves(); ++leaf) {
      const std::uint64_t senders = on_leaf[leaf] - own(leaf, ranks.node_of(rank));
      if (senders == 0) continue;
      const std::uint64_t all = senders * at_port[port] * static_cast<std::uint64_t>(flows);
      const std::size_t part = leaf == fabric.leaf_of(port) ? 0 : 1;
      fabric.route_from_leaf(leaf, port, route);
      counts.add(route, part, all);
      counts.add(fabric.out_of(port), part, all);
    }
  }
  return counts.rows();
}

NetworkRun run_pairs(const CostCall& cost, const RankNetwork& ranks, const CollectiveTime& alone) {
  const auto& cluster = cost.cluster;
  // The price has the latency of the longest path; flows under one leaf begin earlier.
  const Time constant = alone.latency - cluster.collectives.network;
  const auto begin = [&](std::size_t cables) {
    return constant + message_latency(cluster, cables);
  };
  const auto longest = static_cast<std::size_t>(cluster.fabric.longest_path);
  const Parts both{
      {.begin = begin(2), .amount = amount_of(alone), .fastest = fastest_of(alone)},
      {.begin = begin(longest), .amount = amount_of(alone), .fastest = fastest_of(alone)}};
  const Rows rows = pair_rows(ranks, alone.flows);
  Parts parts = both;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const bool used =
        std::ranges::any_of(rows, [&](const LockedLink& row) { return row.flows[p] > 0; });
    if (!used) parts[p].amount = 0, parts[p].begin = Time{};
  }
  return run_parts(parts, rows);
}

}  // namespace

NetworkRun run_as_flows(const NetworkCall& call, const CollectiveTime& alone) {
  if (!call.counts.empty()) {
    throw InputError{
        "--network: events mode does not support all_to_all_v; accepted: static, steps"};
  }
  const CostCall cost{.collective = call.collective,
                      .size = call.size,
                      .group = call.group,
                      .cluster = call.cluster,
                      .sharing = LinkSharing::alone};
  if (alone.pattern == TrafficPattern::none)
    return {.time = alone.time, .transfers = 1, .events = 1};
  const RankNetwork ranks{cost, 1, {}};
  if (alone.pattern == TrafficPattern::all_pairs) {
    if (!ranks.fabric().by_destination()) {
      throw InputError{
          "--network: events mode cannot evaluate all-to-alls under ecmp or adaptive routing; "
          "accepted: static, steps"};
    }
    return run_pairs(cost, ranks, alone);
  }
  const int used = std::max(1, static_cast<int>(std::lround(collectives::nics_used(cost))));
  return run_edges(ranks, alone, alone.pattern == TrafficPattern::pair, used);
}

}  // namespace orrery::models
