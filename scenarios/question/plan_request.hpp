#pragma once
// A plan search: the flags of `orrery plan`, and the result with everything that its report needs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/plan_report.hpp"

namespace orrery::scenarios {

/// The flags of `orrery plan`; empty values mean the defaults.
struct PlanRequest {
  std::string model, cluster;  // names or paths; of a cluster also "dgx-h100 x 64"
  std::optional<std::string> software{};
  std::string precision = "bf16";
  std::string fixed{};    // as --plan: fields that every plan has; of a searched one, no other
  std::string exclude{};  // as --plan: values that no plan may have; a field may stand twice
  std::string objective = "time";
  std::optional<double> headroom{};  // share of a GPU's memory to leave free
  std::int64_t global_batch = 0, seq_len = 0;
  std::size_t top = 10;                   // plans to show
  double gap = 0;                         // share by which another plan may be faster than the best
  std::optional<std::string> tokens{};    // to train on: "300B"
  std::optional<std::string> deadline{};  // for these, by steps alone: "30d"
  std::optional<std::string> pareto{};    // the other objective of a Pareto front: "memory"
  std::optional<std::string> data{};      // member `data` of a scenario: JSON or a path
  /// auto or events: the plans shown are evaluated with their traffic on links; static: they are
  /// not.
  models::NetworkMode network = models::NetworkMode::automatic;
  unsigned threads = 0;  // 0: as many as the machine has
};

struct PlanSearch {
  PlanQuery query{};
  Objective objective = objective_named("time");
  PlanAnswer answer{};
  std::optional<Objective> against{};  // of the Pareto front
  std::optional<double> tokens{};
  std::optional<Time> longest_step{};  // that meets the deadline
  std::vector<RankedPlan> best{}, tight_ahead{};
  MemoryAdvice advice{};     // for the nearest miss where nothing fits
  OverStacks over_stacks{};  // of `best`, where no stack was named
  std::string cluster;       // as the user names it
  std::vector<std::string> assumptions{};
  std::string not_shared{};  // why some plans' traffic is not on links; empty: all are
  std::string simulate{};    // the command line that simulates the best plan; empty without one

  /// The report; it refers to this search and must not outlive it.
  PlanReport report() const;
};

/// Errors  InputError as the flags of `orrery plan`: `--objective: cost needs a price, ...`
PlanSearch search(const PlanRequest& request, const Progress& progress);

}  // namespace orrery::scenarios
