#pragma once
// Internal state of `Network`: small structs for links, flows and components, stored in arrays and
// referring to each other by 32-bit index.

#include <cstdint>
#include <vector>

#include "sim/engine.hpp"
#include "sim/quantity.hpp"

namespace orrery {

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

/// A link's state during progressive filling, in a small array of its own.
struct FillState {
  std::uint64_t left = 0;
  std::uint32_t open = 0;  // flows whose rate is not yet known
};

/// Heap entry: a link's share per open flow when it was last computed. Shares only grow during
/// filling, so this never exceeds the current share.
struct LinkShare {
  std::uint64_t least = 0;
  std::uint32_t link = 0;
  std::uint32_t open = 0;  // number of open flows at that time

  friend bool operator>(const LinkShare& a, const LinkShare& b) { return a.least > b.least; }
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

}  // namespace orrery
