#pragma once
// What a network keeps of its links and flows. Each is known by a number of its own, its place in
// the network's lists: small structs that name each other by 32 bits.

#include <cstdint>
#include <vector>

#include "sim/engine.hpp"
#include "sim/quantity.hpp"

namespace orrery {

inline constexpr std::uint32_t no_number = 0xffff'ffff;  // of no link, flow or component

/// A link of a flow's route.
struct FlowHop {
  std::uint32_t link;
  std::uint32_t place;  // in the link's list of flows
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
  std::uint64_t settled = 0;  // the last settlement that reached it
  bool touched = false;
};

/// A link while its component is filled: kept apart and small.
struct FlowTank {
  std::uint64_t left = 0;
  std::uint32_t open = 0;  // flows whose rate is not yet known
};

/// What a link had for each open flow when this was last looked at; never more than it has now.
struct LinkShare {
  std::uint64_t least = 0;
  std::uint32_t link = 0;
  std::uint32_t open = 0;  // flows, then

  friend bool operator>(const LinkShare& a, const LinkShare& b) { return a.least > b.least; }
};

/// A flow as its links see it.
struct FlowState {
  Int128 remaining = 0;    // 2^-20 byte * ps
  std::uint64_t rate = 0;  // 2^-20 byte/s
  std::uint32_t component = no_number;
  std::uint32_t hops = 0;
};

/// A flow as its sender sees it.
struct FlowMessage {
  std::uint64_t serial = 0;  // 0: no flow
  Bytes size{};
};

/// Flows that share links, directly or through others. One event: its next end.
struct FlowComponent {
  std::vector<std::uint32_t> flows;
  std::vector<std::uint32_t> links;  // that its flows are on, and since then were
  std::size_t touched = 0;           // of those that they are on, in this instant
  Time since{};                      // when `remaining` of its flows was true
  Event end;
  bool dissolved = false;
};

}  // namespace orrery
