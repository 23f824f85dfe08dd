#pragma once
// Random Programs that can always run: a schedule of the library over random blocks, with joint
// collectives and optimizers put at moments of one random order in which the lists can be run.
// Wide on purpose: every rule of the meaning in priced.hpp must matter in some of them, which
// mutation_test.cpp checks.

#include <cstdint>

#include "tests/models/evaluation/programs.hpp"

namespace orrery::models {

/// The same seed gives the same Program everywhere. Its mesh has 1 to 3 tensor and data ranks;
/// where more than one context rank is allowed, also one or two that trade heads, and copies.
Case random_program(std::uint64_t seed, std::int64_t most_context = 1);

/// The same with experts folded over the ranks of a stage: some of its collectives inside blocks,
/// and some of those between replicas, are of the experts' groups instead.
Case random_program_with_experts(std::uint64_t seed);

}  // namespace orrery::models
