#pragma once
// The files of this folder that are compiled into the program.

#include <span>

#include "sim/input/embedded.hpp"

namespace orrery::scenarios {

std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::scenarios
