#pragma once
// What the checks for conflicts (conflicts.hpp) share, and their groups.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/plan/conflicts.hpp"
#include "models/plan/fields.hpp"

namespace orrery::models {

/// One plan, and the conflicts found so far.
class ConflictChecks {
 public:
  ConflictChecks(const Plan& plan, const Model& model, std::int64_t gpus,
                 const Registry<Schedule>& schedules, std::vector<Conflict>& found)
      : plan_{plan}, model_{model}, gpus_{gpus}, schedules_{schedules}, found_{found} {}

 protected:
  void add(std::string pointer, std::string problem) {
    found_.push_back({std::move(pointer), std::move(problem)});
  }

  const Plan& plan_;
  const Model& model_;
  std::int64_t gpus_;
  const Registry<Schedule>& schedules_;
  std::vector<Conflict>& found_;
};

/// tensor, sequence, context and expert parallelism
void add_conflicts_of_axes(const ConflictChecks& checks);
/// ZeRO, offload, compression, tasks, recomputation and stored formats
void add_conflicts_of_state(const ConflictChecks& checks);
/// schedules, and the layers of their chunks
void add_conflicts_of_stages(const ConflictChecks& checks);
/// what a model that is given as a list of operations cannot be cut by
void add_conflicts_of_list(const ConflictChecks& checks);

}  // namespace orrery::models
