#pragma once
// A Program with a price on everything in it.
//
// The meaning, per rank, instructions and operations in program order:
//   launch      L = host + launch;  host = L
//   operation   S = max(L, free + lead, ends that it waits for);  E = S + duration
//               free = E + trail, of its queue;  where the host waits for it, host = max(host, E)
//   collective  inside a block: S is the maximum over its members
//   receive     E_k = max(k-th send ready, receive launched, E_(k-1)) + duration of its channel;
//               a blocking one makes the host wait
//   send        ready = max(L, its input's output)
//   joint       reductions, ties, norm, gathers on queue comm:dp: ready = max(L, its input's end);
//               S = max(ready, free + lead) over all its members, free as above
//   blocking    with blocking communication the host waits for each collective and each receive
//   awaits      before the first operation of a phase that awaits a token:
//               compute = max(host, compute, end of what made it)
//   input       a phase's first block reads its input's output. A phase's output is its last
//               block's, its end that of the compute queue; a receive and a joint have one end for
//               both; without an input there is nothing to wait for
// A step begins at 0 with all queues free, but comm:dp once what is `carried` has ended. It ends
// with the last end on any rank and no earlier than `bound`.
//
// lead and trail: of a transfer that a stack cuts in pieces and runs concurrently with what makes
// or takes them, others see only `duration`. Its wire carries all of it: `lead` before S, and
// `trail` after E. Both are zero elsewhere; only collectives of blocks have a trail.

#include <cstdint>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "models/program/program.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

struct PricedOperation {
  Time launch{};         // host time before it starts
  Time duration{};       // until others may go on
  Time lead{}, trail{};  // what its queue carries of it before and after that
  LinkTimes links{};     // of a transfer
  Time fluid{};          // of `duration`, on links between nodes at its full rate
  TrafficPattern pattern = TrafficPattern::ring;  // there
  int flows = 1;  // of a ring or tree on each of its NICs, of each pair

  /// What it takes of its queue.
  Time occupied() const { return lead + duration + trail; }
};

/// No step is shorter, however its queues interleave, because of the fullest NIC.
struct StepBound {
  Time time{};
  std::uint32_t rank_class = 0;       // whose NIC
  TimeClass part = TimeClass::other;  // most of its traffic
};

struct PricedProgram {
  const Program* program = nullptr;
  std::vector<std::vector<PricedOperation>> blocks;  // as program->blocks
  std::vector<Time> channels;                        // one transfer, as program->channels
  std::vector<LinkTimes> channel_links;              // as channels; may be empty
  std::vector<int> channel_flows;                    // as channels; empty: one each
  std::vector<PricedOperation> collectives;          // as program->collectives
  /// As program->classes; may be empty. What comm:dp still carries of the step before: the rest of
  /// a parameter gather whose end is hidden in the forward that follows.
  std::vector<Time> carried;
  Time transfer_launch{};  // host time of one send or receive
  Time step_launch{};      // host time before the first instruction
  StepBound bound{};
  bool synchronous = false;             // a launch returns when the operation has ended
  bool blocking_receive = false;        // the host waits for what it receives
  bool blocking_communication = false;  // ... and for every collective
  int borrowed_curves = 0;              // of another GPU or format, that these prices rest on

  Time carried_by(std::uint32_t rank_class) const {
    return carried.empty() ? Time{} : carried.at(rank_class);
  }
  bool waits_for_receive() const { return blocking_receive || blocking_communication; }
  bool waits_for(const JointCollective& joint) const {
    return joint.host_waits || blocking_communication;
  }
  bool waits_for(const Operation& op) const {
    return op.host_waits || (synchronous && op.queue == Lane::compute) ||
           (blocking_communication && op.kind == OpKind::collective);
  }
};

/// The same on a GPU whose kernels and copies take 1 / speed times as long.
PricedProgram at_speed(const PricedProgram& priced, double speed);

}  // namespace orrery::models
