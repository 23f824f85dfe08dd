#pragma once
// The evaluation of a step whose collectives and transfers share links with what runs concurrently.
//
// It means what priced.hpp says, but for what crosses nodes: that takes its latency, then its fluid
// part at the rate that it has from moment to moment. One sweep and events in one: each rank runs
// its list, maps of phases included, until it needs an end that is not known; when all stand, the
// earliest event, traffic beginning or ending, is next. That is legal because what waits for an
// unknown end is not earlier than it; traffic that became ready in the past would show that the
// rule was broken, and is an error. The host has a track of its own, ahead of its kernels, which
// stops only where it waits. Other jobs run in the same way next to ours, on the same links.

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models {

/// What an evaluation with traffic found.
struct NetworkTimes {
  /// One replica of every class, the one whose rank ends last: as any other evaluation's.
  StepTimes times;
  std::vector<QueueTimes> ranks;             // by folded rank
  std::vector<std::vector<Time>> transfers;  // ends, by folded channel
  /// By joint collective, for each of its folded groups in order.
  std::vector<std::vector<Time>> collective_starts, collective_ends;
  std::vector<Time> overloaded;  // by row: how long its traffic could have filled it
  std::vector<Time> lost;        // by template: of all its instances, beyond their time alone
  /// By template: to which others it lost that, as shares of 1. All 0 where it was alone on its
  /// row.
  std::vector<std::vector<std::pair<std::uint32_t, double>>> lost_to;
  std::uint64_t items = 0, solves = 0;  // of traffic that shares links
  /// By other job of the Traffic: when its steps ended, no later than ours.
  std::vector<std::vector<Time>> other_steps;
};

/// Errors  a schedule that cannot proceed, traffic ready in the past, traffic that is certified:
///         ContractError
NetworkTimes evaluate_network(const Traffic& traffic);

}  // namespace orrery::models
