#pragma once
// Energy that somebody measured while training, against what is predicted for the same run. Leaves
// out energies that are hours times a rated power, as most model cards state.

#include <string>

#include "scenarios/search/workers.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

struct EnergyReport {
  Json json;
  std::string text;
  bool stopped = false;
};

/// Whether a table has such rows: columns energy_mwh and scope.
bool holds_energy(const Table& table);
///   predicted = power of a step, of the GPUs alone (scope gpu) or with their hosts (node)
///               x hours x PUE
/// Hours are the published ones, so that power alone is judged. Rows without are predicted by hours
/// of steps alone, listed and not scored: the hours that their energy takes at the predicted power
/// are compared with what published runs needed beyond steps.
/// Errors  InputError with file, line and column
EnergyReport compare_energy(const Table& table, const Workers& workers);

}  // namespace orrery::scenarios
