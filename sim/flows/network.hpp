#pragma once
// Max-min fair sharing of links: each flow is limited by the bottleneck link of its route, and no
// flow could be faster without slowing one that is no faster. Rates change only when a flow starts
// or ends; between those instants they are constant. Leaves out packets, windows, buffers,
// congestion control and the reverse traffic of acknowledgements.
//   start of flow on its links = send + sum of its links' latencies
//   end                        = first picosecond at which its last byte has crossed
// Rates are whole multiples of 2^-20 byte/s and what remains is counted in 2^-20 byte * ps, so a
// lone flow ends exactly at ceil(size / bandwidth). max_min.hpp computes the rates.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine.hpp"
#include "sim/flows/link.hpp"
#include "sim/flows/max_min.hpp"
#include "sim/quantity.hpp"

namespace orrery {

// State of `Network`: links, flows and components, in arrays, referring to each other by index.

inline constexpr std::uint32_t no_number = 0xffff'ffff;  // index of no link, flow or component

/// A link of a flow's route.
struct FlowHop {
  std::uint32_t link;
  std::uint32_t place;  // index in the link's list of flows
};

/// A flow on a link, and which of the flow's hops the link is.
struct FlowCrossing {
  std::uint32_t flow;
  std::uint32_t hop;
};

struct FlowLink {
  std::uint64_t capacity = 0;  // 2^-20 byte/s
  Time latency{};
  Bytes carried{};
  std::vector<FlowCrossing> flows;
  std::uint64_t settled = 0;  // number of the last settlement that visited it
  bool touched = false;
};

/// The part of a flow that the rate computation reads.
struct FlowState {
  Int128 remaining = 0;    // 2^-20 byte * ps
  std::uint64_t rate = 0;  // 2^-20 byte/s
  std::uint32_t component = no_number;
  std::uint32_t hops = 0;
};

/// The part of a flow that the rate computation does not read.
struct FlowMessage {
  std::uint64_t serial = 0;  // 0: no flow
  Bytes size{};
};

/// A connected component: flows that share links, directly or through other flows. It has one
/// pending event, the next end of one of its flows.
struct FlowComponent {
  std::vector<std::uint32_t> flows;
  std::vector<std::uint32_t> links;  // of its flows, including flows that have ended since
  std::size_t touched = 0;           // links with flows that this instant touched
  Time since{};                      // the time for which its flows' `remaining` holds
  Event end;
  bool dissolved = false;
};

/// Handle of one flow, valid until the flow ends.
struct FlowId {
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
};

class Network {
 public:
  /// The engine must outlive the network, and the network every run of the engine.
  explicit Network(Engine& engine)
      : engine_{engine}, start_{engine.add_kind<&Network::start>(*this)} {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Errors  bandwidth outside [1 byte/s, 2^44 byte/s), latency < 0: ContractError
  LinkId add_link(Bandwidth bandwidth, Time latency = Time{});

  /// `done` fires when the last byte has arrived; it may be empty. A flow with an empty route or no
  /// bytes takes only the latency.
  /// Errors  size < 0, unknown link, a link crossed twice: ContractError
  FlowId send(Bytes size, std::span<const LinkId> route, Engine::Handler done);
  FlowId send(Bytes size, std::initializer_list<LinkId> route, Engine::Handler done) {
    return send(size, std::span<const LinkId>{route.begin(), route.size()}, std::move(done));
  }

  /// For tests, like `load`: the flow's rate since the end of the last instant; 0 during its
  /// latency and after its end.
  Bandwidth rate(FlowId flow) const;
  /// The sum of the rates on a link.
  Bandwidth load(LinkId link) const;
  Bandwidth bandwidth(LinkId link) const;
  Time latency(LinkId link) const { return links_.at(index(link)).latency; }
  /// Bytes of all flows over this link that have ended.
  Bytes carried(LinkId link) const { return links_.at(index(link)).carried; }

  /// Reserves memory for this many concurrent flows, which takes less than growing step by step.
  void expect(std::size_t flows);

  std::size_t links() const { return links_.size(); }
  /// Flows sent and ended so far; every flow sent ends exactly once.
  std::uint64_t sent() const { return sent_; }
  std::uint64_t ended() const { return ended_; }
  /// Engine events so far: flow starts after a latency, and flow ends (one event for all flows of a
  /// component that end at the same instant).
  std::uint64_t events() const { return events_; }
  /// Memory held for links and flows; it never shrinks, so it is what the busiest instant needed.
  Bytes memory() const;

 private:
  std::uint32_t new_flow(std::size_t hops);
  void widen(std::size_t hops);
  std::span<FlowHop> path(std::uint32_t flow) {
    return {hops_.data() + flow * stride_, flows_[flow].hops};
  }
  void start(Engine::Word flow);
  void join(std::uint32_t flow);
  bool is_alone(std::uint32_t flow) const;
  bool run_alone(std::uint32_t flow);
  void leave(std::uint32_t flow);
  void finish(std::uint32_t flow);
  void touch(std::uint32_t link);
  void settle_at_instant_end();
  void end_next(std::uint32_t component);

  void settle();
  void count_touched();
  std::uint32_t new_component();
  void dissolve(std::uint32_t component);
  bool reuse_component(std::uint32_t first, std::uint32_t heir);
  bool still_connected(std::uint32_t first, std::size_t wanted);
  void collect(std::uint32_t first, std::uint32_t component);
  void adopt(std::uint32_t flow, std::uint32_t component);
  void spread(std::uint32_t flow);
  struct OpenFlows;
  Time fill(const std::vector<std::uint32_t>& links);

  Engine& engine_;
  Engine::Kind start_;
  std::vector<FlowLink> links_;
  std::vector<FlowState> flows_;
  std::vector<FlowMessage> messages_;  // by flow
  std::vector<Engine::Handler> done_;  // by flow, up to the last flow that had a handler
  std::vector<FlowHop> hops_;          // by flow, `stride_` each
  std::size_t stride_ = 4;             // room for the longest route: a power of two
  std::vector<FlowComponent> components_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<std::uint32_t> free_components_;

  // State of the current instant. Indices are reused only after the instant is settled: a handler
  // that has yet to run must not find another flow under its flow's index.
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> retired_flows_;
  std::vector<std::uint32_t> dissolved_;
  std::vector<std::uint32_t> ending_;   // flows, in the order sent
  std::vector<std::uint32_t> reached_;  // links, in breadth-first order
  MaxMinFilling filling_{ShareTies::rounded};
  std::uint64_t unsettled_ = 0;  // flows that the settlement must assign to a component
  std::uint64_t settlement_ = 0;
  bool joined_ = false;    // a flow has started in this instant
  bool settling_ = false;  // a settlement runs at the end of this instant

  std::uint64_t sent_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace orrery
