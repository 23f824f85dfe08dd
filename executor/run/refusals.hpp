#pragma once
// What cannot be executed, found before the first step.

#include <string>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::executor {

/// What the executor or the device lacks for this Program, by name; empty: nothing.
std::string refusal(const models::Program& program, const models::Software& software,
                    const Device& device);

}  // namespace orrery::executor
