#include "models/network/collectives/rank_network.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models::collectives {

RankNetwork::RankNetwork(const CostCall& call, double efficiency, Bandwidth inside)
    : ranks_{call.group.ranks},
      gpus_{call.group.nodes == call.group.ranks ? 1 : call.cluster.node.gpus},
      nics_{std::max(1, call.cluster.node.nics)},
      efficiency_{efficiency},
      inside_{inside},
      step_{call.cluster.collectives.step} {
  if (call.group.nodes == 1) return;
  fabric_.emplace(call.cluster);
  // Latency of a message without its cables, whose links have latencies of their own.
  message_ = message_latency(call.cluster, 0);
}

void RankNetwork::install(Network& network) const {
  if (fabric_) {
    std::vector<Time> begins(fabric_->links());
    for (std::size_t port = 0; port < fabric_->ports(); ++port) {
      begins[index(fabric_->out_of(port))] = message_;
    }
    for (std::size_t i = 0; i < fabric_->links(); ++i) {
      const LinkId link{static_cast<std::uint32_t>(i)};
      network.add_link(fabric_->capacity(link) * efficiency_, fabric_->latency(link) + begins[i]);
    }
  }
  if (inside_.count() <= 0) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    network.add_link(inside_, step_);  // out
    network.add_link(inside_);         // in
  }
}

std::size_t RankNetwork::port_of(int rank) const {
  const int nic = gpus_ == 1 ? 0 : rank % gpus_ * nics_ / gpus_;
  return fabric_->port(static_cast<std::size_t>(node_of(rank)), static_cast<std::size_t>(nic));
}

void RankNetwork::route(int from, int to, Route& route) const {
  if (node_of(from) != node_of(to)) {
    fabric_->route({.from = port_of(from), .to = port_of(to)}, route);
    return;
  }
  const std::size_t first = fabric_ ? fabric_->links() : 0;
  const auto link = [&](int rank, int in) {
    return LinkId{static_cast<std::uint32_t>(first + static_cast<std::size_t>(2 * rank + in))};
  };
  route.assign({link(from, 0), link(to, 1)});
}

Route RankNetwork::rail(int from, int to, int nic) const {
  const auto port = [&](int node) {
    return fabric_->port(static_cast<std::size_t>(node), static_cast<std::size_t>(nic));
  };
  Route route;
  fabric_->route({.from = port(from), .to = port(to), .flow = static_cast<std::uint64_t>(nic)},
                 route);
  return route;
}

}  // namespace orrery::models::collectives
