#pragma once
// How a Program's ranks share sequences, and how its documents do.

#include "executor/device/token_map.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

TokenMap token_map(const models::Program& program, std::int64_t rank);

}  // namespace orrery::executor
