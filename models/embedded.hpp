#pragma once
// The files of this folder that travel inside the program.

#include <span>

#include "sim/input/embedded.hpp"

namespace orrery::models {

std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::models
