#pragma once
// Evaluates a step whose collectives and transfers share links with concurrent traffic.
//
// The rules are those of priced.hpp, except for traffic between nodes: it takes its latency, then
// its fluid part at a rate that changes as other traffic begins and ends. A sweep and an event
// engine are combined: each rank runs its list, phases by their maps, until it needs an end that is
// not known; when all ranks wait, the earliest event is next: traffic that begins or ends. This
// order is valid because whatever waits for an unknown end is no earlier than that end; traffic
// that becomes ready in the past would break the rule, and is an error. Each rank's host has a
// track of its own, ahead of its kernels, and stops only where it waits for them. Other jobs run in
// the same way concurrently with ours, on the same links.

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/launch_delays.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models {

/// The result of an evaluation with traffic.
struct NetworkTimes {
  /// Times of one replica of every class, in the form of other evaluations: the replica of the rank
  /// that ends last.
  StepTimes times;
  std::vector<QueueTimes> ranks;             // by folded rank
  std::vector<std::vector<Time>> transfers;  // ends, by folded channel
  /// By joint collective, for each of its folded groups in order.
  std::vector<std::vector<Time>> collective_starts, collective_ends;
  std::vector<Time> overloaded;  // by link class: how long it was overloaded
  std::vector<Time> lost;        // by flow class: time beyond that at its cap
  /// By flow class: which others caused that loss, as shares of 1. All 0 where it was alone on its
  /// link.
  std::vector<std::vector<std::pair<std::uint32_t, double>>> lost_to;
  std::uint64_t transmissions = 0;  // collectives and transfers on contended links
  std::uint64_t solves = 0;         // how often rates were solved
  /// By other job of the Traffic: the ends of its steps that are no later than ours.
  std::vector<std::vector<Time>> other_steps;
};

/// delays  of each transfer and collective between nodes, added to its latency
/// Errors  a schedule that cannot proceed, traffic ready in the past, traffic whose maps are exact:
///         ContractError
NetworkTimes evaluate_network(const Traffic& traffic, const LaunchDelays& delays = {});

}  // namespace orrery::models
