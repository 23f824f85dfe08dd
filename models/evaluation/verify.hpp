#pragma once
// A step once more, operation by operation on the event engine: does it end as the maps say?

#include <cstdint>
#include <string>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// The first time in which two evaluations of a program differ: "rank 3 queue 1: 5 and 6 ps"; empty
/// where all are the same.
std::string difference(const StepTimes& a, const StepTimes& b);

struct Verification {
  std::uint64_t events = 0;  // that the engine ran
  double seconds = 0;        // wall time
};

/// Runs every operation, transfer and collective of one rank of each class as events and compares
/// their ends with `times`, which maps gave.
/// Errors  one that differs, be it by a picosecond: ContractError naming it
Verification verify(const PricedProgram& priced, const StepTimes& times);

}  // namespace orrery::models
