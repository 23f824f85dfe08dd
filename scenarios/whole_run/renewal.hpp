#pragma once
// One training run between failures, and what is exact about it. A run is work with checkpoints; a
// failure returns it to the last durable one and a restart takes time, during which the next
// failure may come. The cost of a simulated run is per failure, not per step or checkpoint.
//   i-th checkpoint at  T(i) = i (tau + delta) + floor(i / n) delta2
//   a failure at p keeps the largest i with T(i) + lag <= p; a hard one floor(i / n) n
// Leaves out failures during planned stops, and checkpoints at wall-clock times.

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/whole_run/draws.hpp"

namespace orrery::scenarios {

/// Work, and where it is saved. No checkpoint follows the last work.
struct Segments {
  RunTime work{};      // useful time in all
  RunTime interval{};  // tau, of work between checkpoints
  RunTime stall{};     // delta, of each
  RunTime lag{};       // from the end of the stall until it is durable
  /// Two levels: every n-th checkpoint survives the loss of a node, and stalls longer.
  std::int64_t durable_every = 1;
  RunTime durable_stall{};
};

/// What follows a failure.
struct Recovery {
  std::vector<RestartStage> stages;       // one attempt
  std::vector<RestartStage> hard_stages;  // where the node is lost; empty: the same
  double soft = 1;                        // share of failures that keep the node and its memory
  double succeeds = 1;                    // an attempt, by itself
  int retries = 10;                       // failed attempts until somebody is called
  double human_share = 0;                 // of failures that wait for a person at once
  RestartStage human{"a person", {}, 0};  // their time
};

/// Spare nodes, and how long a lost node is in repair (log-normal). While more are lost than there
/// are spares, the job waits; or it runs without them and loses `share` of its speed for each.
struct Spares {
  std::int64_t nodes = 0;
  Seconds repair_mean{}, repair_median{};
  double share = 1;  // 1: it waits
};

/// Where the time of a run went: adds up to its length exactly.
struct RunLedger {
  RunTime useful{}, checkpoints{}, lost{}, restarts{}, human{}, waiting{};

  RunTime total() const { return useful + checkpoints + lost + restarts + human + waiting; }
  RunLedger& operator+=(const RunLedger& other);
};

/// A run that was simulated.
struct SimulatedRun {
  RunLedger ledger;
  std::int64_t failures = 0;             // of the job, also those during restarts
  std::vector<RunTime> failure_times{};  // where they are asked for
};

/// Draws runs of one recovery; made once for many runs.
class RenewalProcess {
 public:
  /// intervals  between failures, of mean 1; nothing: exponential
  RenewalProcess(Recovery recovery, std::optional<Spares> spares,
                 std::optional<QuantileTable> intervals = std::nullopt);

  struct RunConditions {
    Seconds between_failures{};  // running time; infinite: none
    double restart_scale = 1;    // on every restart
    bool keep_times = false;
  };
  /// Adds the run to `run`, whose time goes on: phases are runs after each other.
  void simulate(const Segments& segments, const RunConditions& conditions, Draws& draws,
                SimulatedRun& run) const;

 private:
  class Replica;
  Recovery recovery_;
  std::optional<Spares> spares_;
  std::optional<QuantileTable> intervals_, repairs_;
  QuantileTable soft_attempt_, hard_attempt_, human_;
};

/// E[e^{-R/M}] of a whole restart R: stages multiply; attempts and people are summed.
///   gamma stage (1 + m / (k M))^-k;  constant e^{-m/M}
///   u = (1 - a) phi;  (1 - h) F + h phi_human F,  F = a phi (1 - u^r) / ((1 - u)(1 - u^r
///   phi_human))
/// a  succeeds;  r  retries;  h  human_share
double restart_transform(const Recovery& recovery, Seconds between_failures, double scale = 1);

/// Expected length of a run of one level whose failures are Poisson, also during restarts.
///   (M / phi) (e^{s_last/M} - 1 + (K - 1) e^{lag/M} (e^{(tau+delta)/M} - 1))
/// K  segments;  s_last  the last, without a checkpoint. D of Daly's formula is 0.
/// Source  Daly 2006, "A higher order estimate of the optimum checkpoint interval", with e^{R/M}
///         replaced by 1 / phi, which is exact for any distribution of R
Seconds expected_length(const Segments& segments, Seconds between_failures, double phi);

/// Expected length of one period of n segments between durable checkpoints.
///   T_n = 0;  T_j = [m_j + p_j T_{j+1} + (1-p_j)(q E_soft + (1-q)(E_hard + T_0))] / (1-(1-p_j) q)
///   p_j = e^{-L_j/M};  m_j = M (1 - p_j);  E = M (1/phi - 1)
Seconds expected_period(const Segments& segments, Seconds between_failures, double soft,
                        double phi_soft, double phi_hard);

/// The interval that shortens a run most, whatever its restarts take.
///   tau* = M (1 + W0(-e^{-1-delta/M}))
Seconds best_interval(Seconds between_failures, Seconds stall);

/// A job of n replicas, each of which may fail alone.
struct Replicas {
  std::int64_t count = 1;
  Seconds stall{};  // for all, at a failure
  Seconds out{};    // of the one that failed, from the failure on
};
/// Work goes on with the replicas that are there; no failure comes while all stall.
SimulatedRun simulate_replicas(RunTime work, const Replicas& replicas, Seconds between_failures,
                               Draws& draws);

}  // namespace orrery::scenarios
