#include "models/network/collectives/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "models/network/collectives/rank_network.hpp"
#include "sim/engine.hpp"

namespace orrery::models {
namespace {

using collectives::CostCall;
using collectives::RankNetwork;

/// One simulation: its clock and its links.
struct StepsRun {
  explicit StepsRun(const RankNetwork& ranks) { ranks.install(network); }

  NetworkRun finish() {
    engine.run();
    ensure(network.sent() == network.ended(), "every message that was sent arrives");
    return {.time = engine.now(),
            .transfers = network.ended(),
            .events = network.events(),
            .memory = network.memory()};
  }

  Engine engine;
  Network network{engine};
};

/// Pieces that pass along the edges of a ring or chain, one at a time on each edge. A piece is sent
/// on when it has arrived and the piece before it has left.
class EdgeWalk {
 public:
  /// The edges, and the pieces that cross each of them.
  struct EdgePlan {
    std::vector<Route> routes{};
    bool closed = true;  // a ring: the last edge leads to the first
    std::uint32_t pieces = 0;
    std::vector<Bytes> sizes{};  // of the shards (ring) or pieces (chain); see size_of
  };

  EdgeWalk(StepsRun& run, EdgePlan plan) : run_{run}, plan_{std::move(plan)} {
    edges_.resize(plan_.routes.size());
    for (Edge& edge : edges_) edge.ready = plan_.closed ? 1 : 0;
    if (!plan_.closed) edges_.front().ready = plan_.pieces;
  }

  void begin() {
    for (std::uint32_t edge = 0; edge < edges_.size(); ++edge) advance(edge);
  }

 private:
  struct Edge {
    std::uint32_t sent = 0, ready = 0;
    bool busy = false;
  };

  /// On a ring, piece k on edge e is shard e - k (modulo the number of shards).
  Bytes size_of(std::uint32_t edge, std::uint32_t piece) const {
    const auto shards = static_cast<std::uint32_t>(plan_.sizes.size());
    return plan_.sizes[plan_.closed ? (edge + shards - piece % shards) % shards : piece];
  }

  void advance(std::uint32_t index) {
    Edge& edge = edges_[index];
    if (edge.busy || edge.sent == edge.ready || edge.sent == plan_.pieces) return;
    edge.busy = true;
    run_.network.send(size_of(index, edge.sent++), plan_.routes[index],
                      [this, index] { arrived(index); });
  }

  void arrived(std::uint32_t index) {
    edges_[index].busy = false;
    const bool last = index + 1 == edges_.size();
    if (!last || plan_.closed) {
      const std::uint32_t next = last ? 0 : index + 1;
      ++edges_[next].ready;
      advance(next);
    }
    advance(index);
  }

  StepsRun& run_;
  EdgePlan plan_;
  std::vector<Edge> edges_;
};

/// Cuts `total` into parts that differ by at most one byte.
std::vector<Bytes> cut(Bytes total, std::int64_t parts) {
  std::vector<Bytes> cuts;
  std::int64_t before = 0;
  for (std::int64_t i = 1; i <= parts; ++i) {
    const auto until = static_cast<std::int64_t>(static_cast<Int128>(total.count()) * i / parts);
    cuts.push_back(Bytes{until - before});
    before = until;
  }
  return cuts;
}

CostCall cost_call(const NetworkCall& call) {
  return {.collective = call.collective,
          .size = call.size,
          .group = call.group,
          .cluster = call.cluster,
          .sharing = LinkSharing::alone};
}

Bandwidth inside_rate(const CostCall& call, double share) {
  const int inside = call.ranks_inside();
  return inside > 1 ? Bandwidth{share * collectives::ring_rate(call.cluster, inside)} : Bandwidth{};
}

/// The edges of the ring of one NIC: ranks in order, on each node beginning with the rank after the
/// NIC's index, and from node to node over that NIC.
std::vector<Route> edges_of(const RankNetwork& ranks, int nic, bool closed) {
  std::vector<int> order;
  for (int first = 0; first < ranks.ranks(); first += ranks.gpus()) {
    const int here = std::min(ranks.gpus(), ranks.ranks() - first);
    for (int i = 0; i < here; ++i) order.push_back(first + (nic + 1 + i) % here);
  }
  std::vector<Route> routes;
  const std::size_t edges = closed ? order.size() : order.size() - 1;
  for (std::size_t i = 0; i < edges; ++i) {
    const int from = order[i], to = order[(i + 1) % order.size()];
    const bool crosses = ranks.node_of(from) != ranks.node_of(to);
    Route& route = routes.emplace_back();
    if (crosses) {
      route = ranks.rail(ranks.node_of(from), ranks.node_of(to), nic);
    } else {
      ranks.route(from, to, route);
    }
  }
  return routes;
}

/// Bytes of the pieces in which a broadcast or reduction is pipelined down the chain.
/// Source  NCCL 2.30, src/include/device.h and src/init.cc: a buffer of 4 MiB in 8 steps
constexpr std::int64_t slice = 512 << 10;

/// One ring per NIC of a node, each with an equal part of the bytes: shards go round once
/// (all-gather, reduce-scatter) or twice (all-reduce); broadcast and reduce send slices down a
/// chain.
NetworkRun ring_steps(const NetworkCall& call) {
  const CostCall cost = cost_call(call);
  const auto& fabric = call.cluster.fabric;
  const bool reduces_fully = call.collective == Collective::all_reduce;
  const bool closed =
      call.collective != Collective::broadcast && call.collective != Collective::reduce;
  const RankNetwork ranks{cost, reduces_fully ? fabric.efficiency : fabric.gather_efficiency,
                          inside_rate(cost, call.cluster.collectives.protocols.simple_rate)};
  StepsRun run{ranks};
  const int rings = call.group.nodes > 1 ? ranks.nics() : 1;
  const std::vector<Bytes> parts = cut(call.size, rings);
  std::vector<EdgeWalk> walks;
  walks.reserve(parts.size());
  for (int ring = 0; ring < rings; ++ring) {
    const Bytes part = parts[static_cast<std::size_t>(ring)];
    EdgeWalk::EdgePlan plan{.routes = edges_of(ranks, ring, closed), .closed = closed};
    const std::int64_t slices = std::max<std::int64_t>(1, (part.count() + slice - 1) / slice);
    plan.sizes = cut(part, closed ? call.group.ranks : slices);
    const int rounds = reduces_fully ? 2 : 1;
    plan.pieces = static_cast<std::uint32_t>(closed ? rounds * (call.group.ranks - 1) : slices);
    walks.emplace_back(run, std::move(plan));
  }
  run.engine.at(call.cluster.collectives.base, [&] {
    for (EdgeWalk& walk : walks) walk.begin();
  });
  return run.finish();
}

/// Called for each message with its source, destination and size.
using SendPair = std::function<void(int from, int to, Bytes size)>;

/// Simulates point-to-point messages that all begin at once.
/// flows    upper bound of their number
/// each     calls its argument once for every message
NetworkRun pair_steps(const NetworkCall& call, std::size_t flows,
                      const std::function<void(const SendPair&)>& each) {
  const CostCall cost = cost_call(call);
  const auto& constants = call.cluster.collectives;
  const auto& protocols = constants.protocols;
  const bool one = call.collective == Collective::send_receive;
  const RankNetwork ranks{
      cost, collectives::pair_efficiency(cost),
      inside_rate(cost, one ? protocols.message_rate : protocols.pairs_ring_share)};
  StepsRun run{ranks};
  run.network.expect(flows);
  const Time calls = one ? Time{} : constants.step * (call.group.ranks - 1);
  run.engine.at(constants.base + protocols.pair_base + calls, [&] {
    Route route;
    each([&](int from, int to, Bytes size) {
      ranks.route(from, to, route);
      run.network.send(size, route, {});
    });
  });
  return run.finish();
}

NetworkRun pairwise_steps(const NetworkCall& call) {
  const int n = call.group.ranks;
  const std::vector<Bytes> parts = cut(call.size, n);
  const auto flows = static_cast<std::size_t>(n) * static_cast<std::size_t>(n - 1);
  return pair_steps(call, flows, [&](const SendPair& send) {
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from == to) continue;
        const auto pair = static_cast<std::size_t>(from) * static_cast<std::size_t>(n) +
                          static_cast<std::size_t>(to);
        const Bytes size =
            call.counts.empty() ? parts[static_cast<std::size_t>(to)] : call.counts[pair];
        if (size > Bytes{}) send(from, to, size);
      }
    }
  });
}

NetworkRun direct_steps(const NetworkCall& call) {
  return pair_steps(call, 1, [&](const SendPair& send) { send(0, 1, call.size); });
}

NetworkRun rooted_steps(const NetworkCall& call) {
  const std::vector<Bytes> parts = cut(call.size, call.group.ranks);
  const bool gathers = call.collective == Collective::gather;
  return pair_steps(call, parts.size(), [&](const SendPair& send) {
    for (int other = 1; other < call.group.ranks; ++other) {
      send(gathers ? other : 0, gathers ? 0 : other, parts[static_cast<std::size_t>(other)]);
    }
  });
}

using StepFunction = NetworkRun (*)(const NetworkCall&);

/// Step-by-step simulations by the algorithm's name in the table.
const Registry<StepFunction>& step_functions() {
  static const Registry<StepFunction> known = [] {
    Registry<StepFunction> table{"algorithm of --network steps"};
    table.add("ring", ring_steps);
    table.add("pairwise", pairwise_steps);
    table.add("direct", direct_steps);
    table.add("rooted", rooted_steps);
    return table;
  }();
  return known;
}

}  // namespace

std::vector<std::string> algorithms_in_steps() {
  return step_functions().names();
}

NetworkRun run_steps(const NetworkCall& call) {
  return step_functions().at(call.algorithm)(call);
}

}  // namespace orrery::models
