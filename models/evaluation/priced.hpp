#pragma once
// A priced Program: one training step with a time on every operation, collective and transfer, and
// the rules by which those times become starts and ends. All evaluations follow the same rules:
// (max,+) maps (step_times.hpp), the event engine and the sweep of operations (events.hpp).
// Leaves out that concurrent traffic shares links: traffic/evaluate.hpp.
//
// The rules, for each rank, with instructions and operations in program order. L is when the host
// has launched something, S its start, E its end; `host` is the time of the host, `free` that from
// which a queue takes the next operation, `compute` that of the compute queue.
//   launch      L = host + launch;  host = L
//   operation   S = max(L, free + lead, ends of its dependencies);  E = S + duration;
//               free = E + trail, of its queue;  where the host waits for it, host = max(host, E)
//   collective  inside a block: S is the maximum over the ranks of its group
//   receive     the k-th of a channel: E_k = max(k-th send ready, receive launched, E_(k-1))
//               + duration of the channel;  a blocking receive makes the host wait for E_k
//   send        ready = max(L, output of the phase that it sends)
//   joint       gradient reductions, sums of replicas, norm and gathers, on queue comm:dp:
//               ready = max(L, end of its input);  S = max(ready, free + lead) over the ranks of
//               its group;  E and free as for an operation
//   blocking    with blocking communication the host waits for every collective and every receive
//   awaits      a phase that awaits a token: before its first operation,
//               compute = max(host, compute, end of the instruction that makes the token)
//   input       the first block of a phase reads the output of the phase's input, ready from the
//               beginning where it has none. A phase's output is that of its last block, its end
//               that of the compute queue. A receive and a joint have one end for both
// A step begins at time 0 with all queues free, except comm:dp, which is busy for `carried`, and
// the host, which is busy for `step_launch`. It ends with the last end on any rank, and no earlier
// than `bound`.
//
// lead and trail: some stacks cut a collective into pieces and overlap them with the kernels that
// make or use the data. Other queues then wait only for `duration`, its exposed time. The
// collective's own queue is busy for all of it: for `lead` before S and for `trail` after E. Both
// are 0 elsewhere; only collectives inside blocks have a trail.

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "models/program/counts.hpp"
#include "models/program/program.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Prices of one operation of a block, or of one joint collective.
struct PricedOperation {
  Time launch{};         // host time to launch it
  Time duration{};       // from its start until what depends on it may begin
  Time lead{}, trail{};  // hidden time on its queue, before S and after E
  LinkTimes links{};     // of a collective: how long it keeps links full
  Time fluid{};          // the part of `duration` that moves bytes between nodes, at full rate
  TrafficPattern pattern = TrafficPattern::ring;  // of its flows between nodes
  int flows = 1;  // parallel flows: of a ring or tree on each NIC, else of each pair of ranks

  /// How long it occupies its queue.
  Time occupied() const { return lead + duration + trail; }
};

/// Lower bound of the step, however queues interleave: the time for which the busiest NIC is full.
struct StepBound {
  Time time{};
  std::uint32_t rank_class = 0;       // whose NIC it is
  TimeClass part = TimeClass::other;  // the class of most of its traffic
  std::string queue{};                // or the queue of Program::ahead that is busy for that long
};

/// A Program with its prices. Vectors have the indices of the Program's own.
struct PricedProgram {
  const Program* program = nullptr;
  std::vector<std::vector<PricedOperation>> blocks;  // by block and operation, as program->blocks
  std::vector<Time> channels;                        // one transfer on each, as program->channels
  std::vector<LinkTimes> channel_links;              // as channels; may be empty
  std::vector<int> channel_flows;                    // as channels; empty: one flow each
  std::vector<PricedOperation> collectives;          // as program->collectives
  /// As program->classes; may be empty. How long comm:dp is still busy with the previous step: the
  /// part of its parameter gather that is hidden in the next forward.
  std::vector<Time> carried;
  Time transfer_launch{};  // host time to launch one send or receive
  Time step_launch{};      // host time before the first instruction
  StepBound bound{};
  std::vector<TargetCounts> counts;     // as program->classes; set by price_program
  bool synchronous = false;             // the host waits for every kernel that it launches
  bool blocking_receive = false;        // the host waits for every receive
  bool blocking_communication = false;  // the host waits for every receive and collective
  int fallback_curves = 0;  // fallback curves, of another GPU or format, in these prices

  /// Time for which comm:dp of a class is busy when the step begins.
  Time carried_by(std::uint32_t rank_class) const {
    return carried.empty() ? Time{} : carried.at(rank_class);
  }
  /// Does the host wait for the end of a receive, a joint collective, an operation?
  bool waits_for_receive() const { return blocking_receive || blocking_communication; }
  bool waits_for(const JointCollective& joint) const {
    return joint.host_waits || blocking_communication;
  }
  bool waits_for(const Operation& op) const {
    return op.host_waits || (synchronous && op.queue == Lane::compute) ||
           (blocking_communication && op.kind == OpKind::collective);
  }
};

/// The same Program on a GPU whose kernels take 1 / speed times as long; collectives, transfers,
/// copies between GPU, host and files and the host's own update keep their prices.
PricedProgram at_speed(const PricedProgram& priced, double speed);

}  // namespace orrery::models
