#pragma once
// The data files of models/ (catalogue, software profiles, recipes) that are embedded in the
// library.

#include <span>

#include "sim/input/embedded.hpp"

namespace orrery::models {

std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::models
