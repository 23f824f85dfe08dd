#pragma once
// Which tokens of each sequence a rank holds under context parallelism, and where the documents
// begin and end that are packed into a sequence.

#include "executor/device/token_map.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// The positions of one rank's tokens.
TokenMap token_map(const models::Program& program, std::int64_t rank);

}  // namespace orrery::executor
