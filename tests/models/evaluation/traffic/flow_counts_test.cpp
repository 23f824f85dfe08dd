// Flows of one group on links, by pattern, counted by hand.

#include "models/evaluation/traffic/flow_counts.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace orrery::models {
namespace {

using traffic::edges_of;
using traffic::FlowCounter;

/// A switch that nothing fills: link 2p leaves port p, link 2p + 1 enters it.
NetworkSite one_switch(std::uint32_t nodes, std::uint32_t ports) {
  NetworkSite site;
  site.links.assign(std::size_t{2} * nodes * ports, 50_GBps);
  site.ports_per_node = site.placement.gpus_per_node = ports;
  site.port = 50_GBps;
  site.route = [](std::size_t from, std::size_t to, std::uint64_t, Route& route) {
    route = {LinkId{static_cast<std::uint32_t>(2 * from)},
             LinkId{static_cast<std::uint32_t>(2 * to + 1)}};
  };
  return site;
}

std::map<std::uint32_t, std::uint32_t> counted(const FlowCounter& counter) {
  std::map<std::uint32_t, std::uint32_t> flows;
  for (const LinkFlows& each : counter.found()) flows[each.link] = each.flows;
  return flows;
}

TEST_CASE("A tree's nodes send twice the channels of a ring's, and two nodes once each way") {
  // Two trees of 8: an inner node of one, with parent and two children, is a leaf of the other.
  // Roots have one child and are leaves of the other tree: one down, one up.
  std::map<std::uint32_t, std::uint32_t> out;
  for (const auto& edge : edges_of(TrafficPattern::tree, 8, 2)) out[edge.from] += edge.flows;
  CHECK(out[0] == 2);
  CHECK(out[7] == 2);
  for (std::uint32_t node = 1; node < 7; ++node) CHECK((out[node] == 3 || out[node] == 4));
  // Each tree of 8 nodes has 7 edges of one channel, both ways.
  std::uint32_t all = 0;
  for (const auto& [node, flows] : out) all += flows;
  CHECK(all == 2 * 2 * 7);
  out.clear();
  for (const auto& edge : edges_of(TrafficPattern::tree, 2, 4)) out[edge.from] += edge.flows;
  CHECK(out[0] == 4);
  CHECK(out[1] == 4);
}

TEST_CASE("Every node of a tree has a way to every other") {
  for (std::uint32_t nodes = 2; nodes < 40; ++nodes) {
    const auto edges = edges_of(TrafficPattern::tree, nodes, 2);
    CHECK(edges.size() == std::size_t{4} * (nodes - 1));
    for (const auto& edge : edges) CHECK((edge.from < nodes && edge.to < nodes));
  }
}

TEST_CASE("In an all-to-all every rank sends to every rank of other nodes by its own port") {
  // 3 nodes of 2 ranks: each port sends to 4 ranks and hears from 4.
  const NetworkSite site = one_switch(3, 2);
  FlowCounter counter{site};
  const std::vector<FlowCounter::End> members{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}};
  counter.count(members, TrafficPattern::all_pairs, 1, 0);
  const auto flows = counted(counter);
  CHECK(flows.size() == 12);
  for (const auto& [link, each] : flows) CHECK(each == 4);
  CHECK(counter.busiest() == 4);
}

TEST_CASE("Where messages leave by their destination's rail, ports of unequal groups differ") {
  // Two ranks on node 0, one on node 1 at port 1: both messages to it leave by port 1 of node 0.
  NetworkSite site = one_switch(2, 2);
  site.by_rail = true;
  FlowCounter counter{site};
  const std::vector<FlowCounter::End> members{{0, 0}, {0, 1}, {1, 1}};
  counter.count(members, TrafficPattern::all_pairs, 1, 0);
  // Port 1 of node 0 is link 2, port 1 of node 1 enters by link 7; back one flow to each rank.
  const auto flows = counted(counter);
  CHECK(flows.at(2) == 2);
  CHECK(flows.at(7) == 2);
  CHECK(flows.at(1) == 1);
  CHECK(flows.at(3) == 1);
  CHECK(flows.count(0) == 0);
}

TEST_CASE("A ring of several channels puts them all on each edge") {
  const NetworkSite site = one_switch(4, 1);
  FlowCounter counter{site};
  const std::vector<FlowCounter::End> members{{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  counter.count(members, TrafficPattern::ring, 3, 0);
  const auto flows = counted(counter);
  CHECK(flows.size() == 8);
  for (const auto& [link, each] : flows) CHECK(each == 3);
}

/// Behind the links of one_switch, in every node: 0 from the GPUs' switch to the NICs, 1 back.
NetworkSite behind_one_bridge(std::uint32_t nodes) {
  NetworkSite site = one_switch(nodes, 2);
  site.inside.first_link = static_cast<std::uint32_t>(site.links.size());
  site.inside.links_per_node = 2;
  site.inside.out.assign(4, {0});
  site.inside.in.assign(4, {1});
  site.links.resize(site.links.size() + std::size_t{2} * nodes, 50_GBps);
  return site;
}

TEST_CASE("Flows of two GPUs behind one bridge cross it together, each way") {
  const NetworkSite site = behind_one_bridge(3);
  FlowCounter counter{site};
  const std::vector<FlowCounter::End> members{{0, 0, 0}, {0, 1, 1}, {1, 0, 0},
                                              {1, 1, 1}, {2, 0, 0}, {2, 1, 1}};
  // A ring of two flows a port: two ports a node, in and out.
  counter.count(members, TrafficPattern::ring, 2, 0);
  auto flows = counted(counter);
  for (std::uint32_t link = 0; link < 12; ++link) CHECK(flows[link] == 2);
  for (std::uint32_t link = 12; link < 18; ++link) CHECK(flows[link] == 4);
  CHECK(counter.busiest() == 2);  // of a port: a bridge is none
  // All pairs: each of two members to four others, and from as many.
  counter.count(members, TrafficPattern::all_pairs, 1, 0);
  flows = counted(counter);
  for (std::uint32_t link = 0; link < 12; ++link) CHECK(flows[link] == 4);
  for (std::uint32_t link = 12; link < 18; ++link) CHECK(flows[link] == 8);
}

}  // namespace
}  // namespace orrery::models
