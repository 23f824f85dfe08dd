#pragma once
// How long what is sent keeps its memory. A transfer ends when its receiver has come to it; a rank
// that binds the same memory before waits for that, and in interleaved schedules two ranks may so
// wait for each other. The Program, which frees a buffer as soon as it is sent, does not say so.

#include <cstddef>

#include "models/program/program.hpp"

namespace orrery::executor {

/// The fewest further sends of a channel after which memory may be bound again, such that every
/// rank comes to the end of its list: 0 in schedules that are not interleaved.
std::size_t send_depth(const models::Program& program);

}  // namespace orrery::executor
