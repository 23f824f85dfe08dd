#pragma once
// A priced program evaluated without maps: what `evaluate_maps` is held against.

#include <cstdint>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// The event engine runs every operation of every rank class as events; how many, in `count`.
StepTimes evaluate_events(const PricedProgram& priced, std::uint64_t& count);
StepTimes evaluate_events(const PricedProgram& priced);

/// An oracle of tests. One sweep, operation by operation.
StepTimes evaluate_operations(const PricedProgram& priced);

/// An oracle of tests. The event engine again, with nothing folded: every rank of the mesh on its
/// own, members of a group waiting for each other. Where the folded answer has one entry per rank
/// class, channel or collective, this has one for each of its stage's ranks, tensor varying
/// fastest; with one class per stage `ranks` is thus in rank order.
StepTimes evaluate_all_ranks(const PricedProgram& priced);

}  // namespace orrery::models
