#pragma once
// What a calibration times: the blocks of small and large models as this project lowers them for
// its own executor, single GEMMs and attention calls of larger models as their tensor-parallel
// ranks run them, and expert layers. Plans that are run next come first.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/kernels.hpp"
#include "calibrate/shapes/cases.hpp"
#include "models/plan/plan.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::calibrate {

/// A plan that will run on this machine: its operations are measured first.
struct PlanToMeasure {
  std::string name;
  models::Model model;
  models::Plan plan;
};

/// The timed blocks, and the programs and blocks that they point to; must live while the campaign
/// runs.
struct WorkList {
  std::vector<std::unique_ptr<models::Program>> programs;
  std::vector<std::unique_ptr<models::Block>> made;  // made from those, or for a single operation
  std::vector<TimedBlock> points, launches, loads;
};

struct WorkQuestion {
  Target target = Target::processor;
  std::string generation = "cpu";      // of the GPU or processor, by name
  std::int64_t widest = 16384;         // models of a larger hidden size are left out
  std::vector<PlanToMeasure> plans{};  // measured first
};

/// software  of the executor's stack on that target
WorkList work_list(const models::Software& software, const WorkQuestion& question);

}  // namespace orrery::calibrate
