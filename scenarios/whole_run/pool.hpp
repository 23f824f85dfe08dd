#pragma once
// A job on nodes that come and go: a fleet whose faults and repairs are known, and a pool of spot
// instances. Deterministic: events of a trace, replayed. Leaves out that new nodes may be slower.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/whole_run/draws.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

enum class NodeChange : std::uint8_t { down, up };
struct NodeEvent {
  RunTime at{};
  NodeChange change = NodeChange::down;
  std::int64_t node = 0;
  std::string kind{};  // class of a fault
};

/// Columns time_days, event (fault_start, fault_end), node and class; or time_ms, event (add,
/// remove) and node. Errors: InputError with file and line
std::vector<NodeEvent> read_node_events(const Table& table);

/// Faults of a fleet, and a job on the lowest-numbered healthy nodes.
struct FleetReplay {
  std::int64_t nodes = 0;   // of the fleet: those that ever fail first, in order, then the others
  std::int64_t active = 0;  // that the job needs; it waits until as many are healthy
  RunTime interval{}, stall{}, restart{};
  RunTime horizon{};
};
struct FleetAnswer {
  double ettr = 0;  // saved progress and work under way at the horizon, over the horizon
  double waiting = 0;
  std::int64_t interruptions = 0;
};
/// Events in order of time, then ends before starts, then node. Open faults of a node are counted
/// with a sign: an end at its start's time leaves it up. A fault of an active node ends a restart
/// or a checkpoint under way.
FleetAnswer replay(std::vector<NodeEvent> events, const FleetReplay& job);

/// A job of a variable number of nodes.
struct ElasticJob {
  std::int64_t from = 1, to = 1, unit = 1;  // sizes: multiples of unit within these
  RunTime interval{}, stall{};
  RunTime reconfigure{};  // after a change of size, without work
  RunTime hold{};         // from a change until the job may grow, at the end of a checkpoint
  RunTime notice{};       // of a node's end: long enough for a checkpoint, nothing is lost
};
/// Node-time by what it was used for; adds up to what is paid for.
struct ElasticLedger {
  std::int64_t useful = 0, checkpoints = 0, lost = 0, reconfiguration = 0, unused = 0;

  std::int64_t paid() const { return useful + checkpoints + lost + reconfiguration + unused; }
};
struct ElasticAnswer {
  ElasticLedger ledger;      // node-microseconds
  std::int64_t changes = 0;  // of the nodes in use, and stops
  RunTime length{};
  bool finished = false;  // the work was done before the horizon

  double useful_share() const {
    return static_cast<double>(ledger.useful) / static_cast<double>(ledger.paid());
  }
};
/// Until the horizon, or until `work` node-microseconds are saved. The job uses the
/// lowest-numbered nodes; a loss among them costs what is not saved. Speed is proportional to
/// nodes.
ElasticAnswer run_elastic(std::vector<NodeEvent> events, const ElasticJob& job, RunTime horizon,
                          std::int64_t work = INT64_MAX);

/// Events of a pool as clouds take nodes: several at once.
struct SpotMarket {
  std::int64_t nodes = 1;    // wanted, and there at the start
  double per_node_hour = 0;  // of being taken
  double drop = 1;           // mean nodes that are taken together
  Seconds refill{};          // mean time until a node is replaced
};
std::vector<NodeEvent> draw_market(const SpotMarket& market, RunTime horizon, Draws& draws);

}  // namespace orrery::scenarios
