#pragma once
// Evaluations of a priced Program without maps, against which `evaluate_maps` is checked.

#include <cstdint>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// Runs every operation of one rank of each class on the event engine. `count` becomes the number
/// of events.
StepTimes evaluate_events(const PricedProgram& priced, std::uint64_t& count);
StepTimes evaluate_events(const PricedProgram& priced);

/// Test oracle: the event engine with every rank of the mesh simulated by itself, and members of a
/// group waiting for each other. Where the other evaluations have one entry per rank class, channel
/// or collective, this one has an entry for each rank of the stage, tensor index varying fastest;
/// with one class per stage `ranks` is thus in rank order.
StepTimes evaluate_all_ranks(const PricedProgram& priced);

}  // namespace orrery::models
