#pragma once
// A loop of steps that is given as a list of operations, from its first step to its last, in phases
// with other numbers of GPUs (models/prediction/listed_steps.hpp). No failures: such a run restarts
// from files that it writes anyway.

#include <optional>
#include <string>

#include "models/prediction/listed_steps.hpp"
#include "scenarios/scenario/scenario.hpp"

namespace orrery::scenarios {

struct LoopRunReport {
  std::string scenario, model_name, cluster, software;
  models::ListedRun run;
  std::vector<std::pair<std::int64_t, models::ListedRun>> alternatives;  // with one number of GPUs
  std::optional<double> deadline_hours;

  bool meets() const { return !deadline_hours || run.hours <= *deadline_hours; }
};

/// The run of a scenario whose model is a loop; nullopt: its model is trained.
std::optional<LoopRunReport> loop_run(const Scenario& scenario,
                                      std::optional<double> deadline_hours);

Json to_json(const LoopRunReport& report);
std::string text_of(const LoopRunReport& report, bool colour);

}  // namespace orrery::scenarios
