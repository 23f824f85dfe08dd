#pragma once
// When GPUs of a generation were announced: software of an earlier year does not run on them.

#include <optional>
#include <string_view>

namespace orrery::hardware {

/// The year of the first announcement; nullopt: not stated, or no such generation.
std::optional<int> year_announced(std::string_view generation);

}  // namespace orrery::hardware
