#pragma once
// Steps of a loop that is given as a list of operations, some of which run in every n-th step only:
// the mean over all of them. And a whole run of such a loop, in phases with other numbers of GPUs.

#include <cstdint>
#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// The prediction of the step that occurs most, with the times, breakdown and energy of the mean
/// step, and the memory of the one that needs most. Each set of operations that come due together
/// is predicted once, by `one`. Errors  periods whose least common multiple is above a million:
/// InputError
Prediction mean_step(const Question& question, Prediction (*one)(const Question&));

/// A part of a run with one number of GPUs.
struct LoopPhase {
  std::int64_t gpus = 0;
  Time step{};  // mean
  double steps = 0, hours = 0;
  double change_hours = 0;  // before it: what the change of GPUs costs
  double busy = 0;          // share of the step in kernels
};

struct ListedRun {
  std::vector<LoopPhase> phases;
  double steps = 0, hours = 0, gpu_hours = 0;
};

/// The phases of a list's run, on nodes of the question's cluster.
/// Errors  a list without a run; a phase that needs more GPUs than the cluster has: InputError
ListedRun listed_run(const Question& question);
/// The same on this number of GPUs throughout.
ListedRun listed_run_on(const Question& question, std::int64_t gpus);

}  // namespace orrery::models
