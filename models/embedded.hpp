#pragma once
// The data files of models/ that are embedded in the library: catalogue, data, prediction,
// recipes, software.

#include <span>

#include "sim/input/embedded.hpp"

namespace orrery::models {

std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::models
