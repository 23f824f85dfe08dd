#pragma once
// What the document of a simulated step says besides its figures: the names of what was asked, and
// the timeline that a page draws.

#include <string>

#include "scenarios/scenario/scenario.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// `command, scenario, model, cluster, gpu, nodes, gpus_per_node, nics_per_node, fabric, software,
/// plan, plan_title, available_memory_bytes`.
Json heading_of(const std::string& scenario, const models::Question& question);

/// The step in equal parts of time, of the first rank of some stages (the first and the last, the
/// slowest, and some between them): which share of each part a queue is busy and with what class of
/// instruction, and the most memory in it.
Json timeline_json(const models::Prediction& prediction);

}  // namespace orrery::scenarios
