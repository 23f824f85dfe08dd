#pragma once
// A measured log next to its prediction, and the two constants that would explain it.

#include <vector>

#include "scenarios/collective/collective_request.hpp"

namespace orrery::scenarios {

/// Puts the measured times into the rows of their sizes; where the log has all-reduces of the same
/// ranks, fits
///   t = latency * steps(n) / steps of an all-reduce + bus_factor * size / bus
/// to them (least squares of t / measured - 1) and applies it to the log's other collectives.
/// steps  2 (n-1) of an all-reduce, n-1 of the others
/// Errors  another GPU's name, other ranks: InputError
void explain_measured(const std::vector<MeasuredPoint>& measured, const hardware::Cluster& cluster,
                      CollectiveReport& answer);

}  // namespace orrery::scenarios
