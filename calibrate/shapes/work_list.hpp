#pragma once
// What a calibration times: the blocks of small and large models as this project lowers them for
// its own executor, single products and attentions of the widths of larger ones, as tensor ranks of
// those have them, layers of experts; the plans that are run next come first.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/kernels.hpp"
#include "calibrate/shapes/cases.hpp"
#include "models/plan/plan.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::calibrate {

/// A plan that will run on this machine: what its steps run is measured first.
struct PlanToMeasure {
  std::string name;
  models::Model model;
  models::Plan plan;
};

/// Programs and blocks own what the timed blocks point to; they stay while the campaign runs.
struct WorkList {
  std::vector<std::unique_ptr<models::Program>> programs;
  std::vector<std::unique_ptr<models::Block>> made;  // of those
  std::vector<TimedBlock> points, launches, loads;
};

struct WorkQuestion {
  Target target = Target::processor;
  std::string generation = "cpu";      // of the GPU, by name
  std::int64_t widest = 16384;         // models of a larger hidden size are left out
  std::vector<PlanToMeasure> plans{};  // measured first
};

/// software  of the executor's stack on that target
WorkList work_list(const models::Software& software, const WorkQuestion& question);

}  // namespace orrery::calibrate
