#pragma once
// Simulates a collective on the links of its cluster, so that topology and routes determine its
// time.
//   steps    every message of every rank is a flow of its own, sent when its input has arrived
//   locked   one or two parts whose flows move at one rate and are counted per link, never listed;
//            the evaluation of a training step treats collectives this way
// Both use the cluster's rates, efficiencies and latencies, and agree with the closed forms where
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

/// Result of such a simulation.
struct NetworkRun {
  Time time{};
  std::uint64_t transfers = 0;  // messages, each a flow; locked: parts
  std::uint64_t events = 0;     // of the simulation
  Bytes memory{};               // of the simulation, without the topology
};

/// Algorithms that `steps` implements; it refuses the others.
std::vector<std::string> algorithms_in_steps();

/// Simulates every message.
/// Errors  an algorithm that steps do not implement: InputError
NetworkRun run_steps(const NetworkCall& call);

/// Simulates locked parts.
/// alone   the collective's price with nothing else on its links: its latency, and its fluid time
/// at
///         the rate `wire`, which give the bytes of each flow
/// Errors  distinct sizes: InputError
NetworkRun run_as_flows(const NetworkCall& call, const CollectiveTime& alone);

}  // namespace orrery::models
