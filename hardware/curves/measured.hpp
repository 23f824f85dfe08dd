#pragma once
// Measured tables compiled into the program; hardware/measured/README.md describes the columns and
// where they were published. Parsed on first use, then shared.

#include "sim/input/csv.hpp"

namespace orrery::hardware {

const Table& measured_kernels();
const Table& measured_collectives();
const Table& measured_rates();
/// Column `source` of the two, and `published_at`.
const Table& measured_sources();

}  // namespace orrery::hardware
