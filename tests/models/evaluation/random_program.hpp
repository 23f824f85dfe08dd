#pragma once
// Random Programs that can always run: a schedule of the library over random blocks, with joint
// collectives and optimizers put at moments of one random order in which the lists can be run.
// Wide on purpose: every rule of the meaning in priced.hpp must matter in some of them, which
// mutation_test.cpp checks.

#include <cstdint>

#include "tests/models/evaluation/programs.hpp"

namespace orrery::models {

/// The same seed gives the same Program everywhere. Its mesh has 1 to 3 tensor and data ranks.
Case random_program(std::uint64_t seed);

}  // namespace orrery::models
