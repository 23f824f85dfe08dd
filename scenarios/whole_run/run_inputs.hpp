#pragma once
// What a whole run is asked with: member `run` of a scenario. Every default is reported, with where
// it is from.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario/run_price.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/whole_run/pool.hpp"
#include "scenarios/whole_run/renewal.hpp"

namespace orrery::scenarios {

/// The rate of failures that stop the job, as a gamma variable per node-day; a node has 8 GPUs.
///   after n failures in d node-days: shape + n, exposure + d; where the fleets behind it would see
///   such a count less than once in a thousand, the count alone: n + 1/2, d
struct RatePrior {
  double shape = 4.17;
  double exposure = 824;  // node-days

  /// Would these fleets see so many, or so few, failures at most once in a thousand times?
  bool contradicts(double failures, double node_days) const;
  RatePrior observed(double failures, double node_days) const {
    if (contradicts(failures, node_days)) return {failures + 0.5, node_days};
    return {shape + failures, exposure + node_days};
  }
  double mean() const { return shape / exposure; }
  double at(double share) const;  // quantile
};
/// By moments of a log-normal: median, and the deviation of its logarithm.
RatePrior prior_of(double median, double spread);
inline constexpr int usual_node_gpus = 8;  // of the fleets behind the rate

/// A part of the run with a length of sequences, a batch, a number of nodes or other fields of the
/// plan of its own.
struct RunPhase {
  double tokens = 0;
  std::optional<std::int64_t> seq_len{}, global_batch{}, nodes{};
  std::vector<std::pair<std::string, Json>> plan{};  // {"context", 16}: fields by their keys
};

/// Values that depend on the plan and are filled in with it where they are not stated.
struct CheckpointInputs {
  std::optional<Seconds> every{}, stall{}, write{}, load{};
  std::optional<std::int64_t> every_steps{};  // instead of `every`
  std::optional<Bytes> bytes{};
  bool asynchronous = true;
  std::int64_t durable_every = 1;  // two levels: every n-th leaves the nodes
};

/// Something that is done every so often.
struct Recurring {
  Seconds every{}, time{};
};

/// Evaluations as training tools state them: every so many steps, over so many batches of a step's
/// size, of which each runs forward.
struct Evaluations {
  std::optional<Seconds> every{}, time{};                   // of what is stated as a time
  std::optional<std::int64_t> every_steps{}, iterations{};  // else
};

/// Nodes that are paid for alike, in one place: a zone, a reservation, a spot market.
struct NodePool {
  std::string name;
  std::int64_t nodes = 0;
  std::optional<Price> price{};                   // of a GPU-hour; nothing: the run's
  std::optional<std::vector<NodeEvent>> trace{};  // repeated until the work is done
  SpotMarket market{};                            // of a fixed pool: its hardware's failures
  bool spot = false;                              // nodes are taken
};
/// The network between pools in different places: gradients cross it once a step, reduced within
/// each place before, or after `every` steps that each place took by itself, what its parameters
/// changed by.
///   (2 (z - 1) / z  gradient_bytes parameters / bandwidth + 2 (z - 1) latency) / every,  z places
/// Source  local steps with an outer update: McMahan et al. 2017, arXiv 1602.05629 (federated
///         averaging); Douillard et al. 2023, arXiv 2311.08105 (DiLoCo: 500 steps, eight places)
/// Leaves out how many more tokens such a training needs, and that an outer update could overlap
/// with steps.
struct BetweenPools {
  Bandwidth bandwidth{};  // of all nodes together, per direction
  Seconds latency{};
  double gradient_bytes = 4;  // of a parameter
  double dollars_per_gb = 0;  // that leaves a place
  std::int64_t every = 1;     // steps between two exchanges
};

/// Errors  InputError with the place of the member
BetweenPools read_between(const Node& node);

struct SpotInputs {
  std::optional<std::vector<NodeEvent>> trace{};  // repeated until the work is done
  SpotMarket market{};
  RunTime notice{};
};
/// Numbers of nodes that the job may run on.
struct SizeInputs {
  std::optional<std::int64_t> from{}, to{}, unit{};
  RunTime reconfigure{}, hold{};
};

struct RunInputs {
  std::vector<RunPhase> phases;  // empty: one of all tokens
  RatePrior rate;
  std::string rate_source;
  double soft = 0.75;
  std::optional<QuantileTable> intervals;  // of mean 1; nothing: exponential
  std::optional<std::string> failure_trace;
  std::vector<RestartStage> stages;  // `communicators` and `load` with mean < 0 are filled in
  double restart_spread = 0.5;
  double succeeds = 0.9;
  int retries = 10;
  std::optional<double> human_share;
  Seconds human{3 * 3600.0};
  CheckpointInputs checkpoint;
  std::optional<Spares> spares;
  std::optional<Evaluations> evaluation;
  std::optional<Recurring> maintenance;
  std::optional<Replicas> replicas;
  std::optional<SpotInputs> spot;
  std::vector<NodePool> pools;  // empty: all nodes are of one
  std::optional<BetweenPools> between;
  SizeInputs sizes;
  std::optional<Bandwidth> store_read, store_write;  // of the whole store
  double jitter = 0;                                 // deviation of a rank's step, as a share of it
  double residual_median = 1.03, residual_spread = 0.08;
  double pue = 1.25, co2_kg_per_kwh = 0.41;
  std::optional<OwnedGpu> own;
  std::optional<Price> price;  // of a GPU-hour, instead of the cluster's
  std::vector<std::string> assumptions;
};

/// Every default.
RunInputs usual_run();
/// Reads `run` of a scenario. nodes  of the cluster, for observed failures
/// observed  "14/30d": failures in days of this cluster
RunInputs read_run(const Scenario& scenario, std::int64_t node_gpus, std::int64_t nodes,
                   const std::optional<std::string>& observed);

}  // namespace orrery::scenarios
