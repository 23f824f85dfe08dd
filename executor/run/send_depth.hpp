#pragma once
// How long a sent buffer keeps its memory. A send ends when the receiver has reached the matching
// receive; a rank that binds the memory again earlier must wait for that, and in interleaved
// schedules two ranks may then deadlock. The Program does not model this: it frees a buffer as soon
// as it is sent.

#include <cstddef>

#include "models/program/program.hpp"

namespace orrery::executor {

/// How many further sends of a channel must follow a send before its memory may be bound again, so
/// that no deadlock results: the first of 0, 1, 2, 4, ... with which every rank reaches the end of
/// its instruction list. 0 in schedules that are not interleaved.
std::size_t send_depth(const models::Program& program);

}  // namespace orrery::executor
