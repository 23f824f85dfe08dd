#pragma once
// Checks before the first step whether this executor and its device can run a Program.

#include <string>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::executor {

/// The name of something that the executor or the device lacks for this Program; empty: nothing.
std::string refusal(const models::Program& program, const models::Software& software,
                    const Device& device);

}  // namespace orrery::executor
