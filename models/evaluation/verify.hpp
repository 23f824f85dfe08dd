#pragma once
// Checks an evaluation by maps: evaluates the step again, operation by operation on the event
// engine, and compares the times. Links that traffic shares are not covered.

#include <cstdint>
#include <string>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// The first time in which two evaluations of a program differ: "rank 3 queue 1: 5 and 6 ps"; empty
/// where all are the same.
std::string difference(const StepTimes& a, const StepTimes& b);

/// What a verification took.
struct Verification {
  std::uint64_t events = 0;  // handled by the engine
  double seconds = 0;        // wall time
};

/// Runs every operation, transfer and collective of one rank of each class as events and compares
/// their ends with `times`, which maps gave.
/// Errors  one that differs, be it by a picosecond: ContractError naming it
Verification verify(const PricedProgram& priced, const StepTimes& times);

}  // namespace orrery::models
