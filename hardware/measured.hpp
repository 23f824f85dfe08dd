#pragma once
// The measured rows that travel inside the program: what their columns say and where they were
// published is in hardware/measured/README.md. Parsed when first asked for, then shared.

#include "sim/input/csv.hpp"

namespace orrery::hardware {

const Table& measured_kernels();
const Table& measured_collectives();
/// Column `source` of the two, and `published_at`.
const Table& measured_sources();

}  // namespace orrery::hardware
