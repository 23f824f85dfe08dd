#pragma once
// Published results of MLPerf Storage against the lane of a step's input (models/data/): simulated
// accelerators that compute for a fixed time a batch, and wait for the store under test.

#include <string>

#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

struct StorageReport {
  Json json;
  std::string text;
};

/// Whether a table has such rows: columns au_pct and accelerators.
bool holds_storage(const Table& table);
/// Two predictions of each row's samples per second. From its own utilisation, which says whether
/// both figures of a row mean the same. And from the other rows of the system, whose highest rate
/// a host is what its store can deliver: of the same workload, or else of any.
/// Errors  InputError with file, line and column
StorageReport compare_storage(const Table& table);

}  // namespace orrery::scenarios
