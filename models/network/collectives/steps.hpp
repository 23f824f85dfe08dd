#pragma once
// A collective on the links of its cluster, whose shape and routes then decide what it takes.
//   steps    every message of every rank is a flow of its own, sent when what it needs has come
//   locked   one or two locked parts whose flows are counted per link, never listed: what a step's
//            evaluation does with a collective
// Both have the machine's rates, efficiencies and latencies, and agree with the closed forms where
// these hold. Steps leave out the ramp of protocols and pipelines, and copies inside a GPU.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models {

/// A collective of the ranks that fill a cluster's nodes in order, with nothing else on its links.
struct NetworkCall {
  Collective collective{};
  Bytes size{};
  GroupShape group{};
  const hardware::Cluster& cluster;
  std::string_view algorithm{};
  /// all_to_all_v: bytes from rank i to rank j at i * ranks + j.
  std::span<const Bytes> counts{};
};

struct NetworkRun {
  Time time{};
  std::uint64_t transfers = 0;  // messages of which each is a flow; locked: parts
  std::uint64_t events = 0;     // of the simulation
  Bytes memory{};               // that the simulation held, its topology aside
};

/// Algorithms that steps know: the others are refused.
std::vector<std::string> algorithms_in_steps();

/// Errors  an algorithm that steps do not know: InputError
NetworkRun run_steps(const NetworkCall& call);

/// alone   its price with nothing else on its links: its latency, and the bytes on a NIC that it
///         takes for a while of its fluid part
/// Errors  distinct sizes: InputError
NetworkRun run_locked(const NetworkCall& call, const CollectiveTime& alone);

}  // namespace orrery::models
