#include "models/evaluation/traffic/flow_counts.hpp"

#include <algorithm>

namespace orrery::models::traffic {

namespace {

constexpr std::uint32_t no_parent = 0xffffffff;

/// The parent in the in-order binary tree of these nodes: rank 0 is the root, odd ranks are leaves.
std::uint32_t parent_in_tree(std::uint32_t rank, std::uint32_t nodes) {
  if (rank == 0) return no_parent;
  const std::uint32_t bit = rank & (~rank + 1);  // the lowest one set
  const std::uint32_t above = (rank ^ bit) | (bit << 1);
  return above < nodes ? above : rank ^ bit;
}

/// The parent in the second tree, which is the first one mirrored, or shifted where the number of
/// nodes is odd, so that leaves of one are inner nodes of the other.
std::uint32_t parent_in_second(std::uint32_t rank, std::uint32_t nodes) {
  const bool even = nodes % 2 == 0;
  const std::uint32_t image = even ? nodes - 1 - rank : (rank + nodes - 1) % nodes;
  const std::uint32_t parent = parent_in_tree(image, nodes);
  if (parent == no_parent) return no_parent;
  return even ? nodes - 1 - parent : (parent + 1) % nodes;
}

}  // namespace

std::vector<NodeEdge> edges_of(TrafficPattern pattern, std::uint32_t nodes, std::uint32_t flows) {
  std::vector<NodeEdge> edges;
  if (pattern == TrafficPattern::tree) {
    const std::uint32_t each = std::max(1U, flows / 2);
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
      for (const auto parent : {parent_in_tree(rank, nodes), parent_in_second(rank, nodes)}) {
        if (parent == no_parent) continue;
        edges.push_back({rank, parent, each});
        edges.push_back({parent, rank, each});
      }
    }
    return edges;
  }
  for (std::uint32_t i = 0; i + 1 < nodes; ++i) edges.push_back({i, i + 1, flows});
  if (pattern != TrafficPattern::pair) edges.push_back({nodes - 1, 0, flows});
  return edges;
}

void FlowCounter::count(std::span<const End> members, TrafficPattern pattern, std::uint32_t flows,
                        std::uint64_t tag) {
  found_.clear();
  cables_.clear();
  tag_ = tag;
  collect_nodes(members);
  const auto nodes = static_cast<std::uint32_t>(nodes_.size());
  if (nodes < 2) return;
  if (pattern == TrafficPattern::all_pairs) {
    spread_ports();
    for (std::size_t from = 0; from < nodes; ++from) {
      for (std::size_t to = 0; to < nodes; ++to) {
        if (from == to) continue;
        add_pairs(from, to, flows);
        if (!site_.inside.empty()) add_pairs_inside(from, to, flows);
      }
    }
    return sum_up();
  }
  choose_ports();
  for (const NodeEdge& edge : edges_of(pattern, nodes, flows)) {
    for (std::size_t k = 0; k < exits_[edge.from].size(); ++k) add_edge(edge, k);
  }
  sum_up();
}

std::uint32_t FlowCounter::busiest() const {
  std::uint32_t most = 0;
  for (const std::uint32_t cable : cables_) {
    const auto at = std::ranges::lower_bound(found_, cable, {}, &LinkFlows::link);
    most = std::max(most, at->flows);
  }
  return most;
}

/// Collects nodes in the order in which members are first met on them, and the ports of the members
/// of each.
void FlowCounter::collect_nodes(std::span<const End> members) {
  nodes_.clear();
  for (auto& each : exits_) each.clear();
  for (const End& member : members) {
    if (seen_.size() <= member.node) seen_.resize(member.node + 1, 0);
    if (seen_[member.node] == 0) {
      nodes_.push_back(member.node);
      seen_[member.node] = static_cast<std::uint32_t>(nodes_.size());
      if (exits_.size() < nodes_.size()) exits_.emplace_back();
    }
    exits_[seen_[member.node] - 1].push_back({member.port, member.gpu});
  }
  for (const std::uint32_t at : nodes_) seen_[at] = 0;
}

std::uint32_t FlowCounter::ports_of_rank() const {
  return std::max<std::uint32_t>(1, site_.ports_per_node / site_.placement.gpus_per_node);
}

/// Chooses equally many ports on each node, as many as the group's ranks have on the node with the
/// fewest: those next to the ranks, and where a port is taken already, the one after it.
void FlowCounter::choose_ports() {
  const std::uint32_t all = site_.ports_per_node;
  std::size_t fewest = exits_[0].size();
  for (std::size_t i = 0; i < nodes_.size(); ++i) fewest = std::min(fewest, exits_[i].size());
  const std::size_t wanted = std::min<std::size_t>(all, fewest * ports_of_rank());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<NodeExit>& each = exits_[i];
    std::vector<NodeExit> chosen;
    const auto taken = [&chosen](std::uint32_t port) {
      return std::ranges::any_of(chosen,
                                 [port](const NodeExit& other) { return other.port == port; });
    };
    for (std::size_t k = 0; chosen.size() < wanted; ++k) {
      NodeExit exit = each[k % each.size()];
      while (taken(exit.port)) exit.port = (exit.port + 1) % all;
      chosen.push_back(exit);
    }
    each = std::move(chosen);
  }
}

/// Lists the ports of every member, one after another, where a rank has several.
void FlowCounter::spread_ports() {
  const std::uint32_t each = ports_of_rank();
  if (each == 1) return;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<NodeExit> all;
    for (const NodeExit& exit : exits_[i]) {
      for (std::uint32_t k = 0; k < each; ++k) {
        all.push_back({(exit.port + k) % site_.ports_per_node, exit.gpu});
      }
    }
    exits_[i] = std::move(all);
  }
}

void FlowCounter::add_edge(const NodeEdge& edge, std::size_t exit) {
  const std::uint32_t from = nodes_[edge.from], to = nodes_[edge.to];
  const NodeExit out = exits_[edge.from][exit], in = exits_[edge.to][exit];
  add_flow(std::size_t{from} * site_.ports_per_node + out.port,
           std::size_t{to} * site_.ports_per_node + in.port, edge.flows);
  if (site_.inside.empty()) return;
  add_inside(from, site_.by_rail ? next_to(in.port) : out, Direction::out, edge.flows);
  add_inside(to, in, Direction::in, edge.flows);
}

/// Adds flows from all members on a node to all on another, from port k of one to port k of the
/// other; members at one port are added together. With PXN a message leaves on its destination's
/// rail.
void FlowCounter::add_pairs(std::size_t from, std::size_t to, std::uint32_t flows) {
  const std::uint32_t each = ports_of_rank();
  const std::size_t base = std::size_t{nodes_[from]} * site_.ports_per_node;
  const std::vector<NodeExit>&out = exits_[from], &in = exits_[to];
  const auto ranks = static_cast<std::uint32_t>(out.size() / each);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t end = std::size_t{nodes_[to]} * site_.ports_per_node + in[i].port;
    if (site_.by_rail) {
      add_flow(base + in[i].port, end, ranks * flows);
      continue;
    }
    at_port_.assign(site_.ports_per_node, 0);
    for (std::size_t o = i % each; o < out.size(); o += each) at_port_[out[o].port] += flows;
    for (std::uint32_t port = 0; port < at_port_.size(); ++port) {
      if (at_port_[port] > 0) add_flow(base + port, end, at_port_[port]);
    }
  }
}

void FlowCounter::add_flow(std::size_t out, std::size_t in, std::uint32_t flows) {
  site_.route(out, in, tag_, route_);
  if (route_.empty()) return;
  for (const LinkId link : route_) {
    found_.push_back({static_cast<std::uint32_t>(index(link)), flows});
  }
  cables_.push_back(static_cast<std::uint32_t>(index(route_.front())));
  cables_.push_back(static_cast<std::uint32_t>(index(route_.back())));
}

/// Adds the paths of the same flows between GPUs and ports.
void FlowCounter::add_pairs_inside(std::size_t from, std::size_t to, std::uint32_t flows) {
  const std::uint32_t each = ports_of_rank();
  const std::vector<NodeExit>&out = exits_[from], &in = exits_[to];
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto ranks = static_cast<std::uint32_t>(out.size() / each);
    add_inside(nodes_[to], in[i], Direction::in, ranks * flows);
    if (site_.by_rail) {
      add_inside(nodes_[from], next_to(in[i].port), Direction::out, ranks * flows);
      continue;
    }
    for (std::size_t o = i % each; o < out.size(); o += each) {
      add_inside(nodes_[from], out[o], Direction::out, flows);
    }
  }
}

void FlowCounter::add_inside(std::uint32_t node, NodeExit exit, Direction direction,
                             std::uint32_t flows) {
  const InsidePaths& inside = site_.inside;
  const std::size_t way = std::size_t{exit.gpu} * site_.ports_per_node + exit.port;
  const std::uint32_t first = inside.first_link + node * inside.links_per_node;
  for (const std::uint32_t link : (direction == Direction::out ? inside.out : inside.in)[way]) {
    found_.push_back({first + link, flows});
  }
}

/// The GPU next to a port, which sends what leaves by it; the first GPU where none is next to it.
FlowCounter::NodeExit FlowCounter::next_to(std::uint32_t port) const {
  for (std::uint32_t gpu = 0; gpu < site_.placement.gpus_per_node; ++gpu) {
    if (site_.port_of(gpu) == port) return {port, gpu};
  }
  return {port, 0};
}

void FlowCounter::sum_up() {
  const auto by_link = [](const LinkFlows& a, const LinkFlows& b) { return a.link < b.link; };
  std::ranges::sort(found_, by_link);
  std::size_t last = 0;
  for (std::size_t i = 1; i < found_.size(); ++i) {
    if (found_[i].link == found_[last].link) {
      found_[last].flows += found_[i].flows;
    } else {
      found_[++last] = found_[i];
    }
  }
  if (!found_.empty()) found_.resize(last + 1);
  std::ranges::sort(cables_);
  cables_.erase(std::unique(cables_.begin(), cables_.end()), cables_.end());
}

}  // namespace orrery::models::traffic
