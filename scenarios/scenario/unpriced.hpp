#pragma once
// Numbers of a scenario that are read but that no price depends on yet. `show scenario` lists them,
// `--set` on one adds an assumption, and a test checks that every other number changes a result.

#include <optional>
#include <span>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

struct UnpricedPointer {
  std::string_view pattern;  // a JSON pointer; "*" is any step, "**" at the end any steps
  std::string_view reason;
};

std::span<const UnpricedPointer> unpriced_pointers();

/// Why no price depends on the number at a pointer; nothing if one does.
std::optional<std::string_view> why_unpriced(std::string_view pointer);

/// The values of a scenario that are in the table: pointer to reason.
Json unpriced_in(const Json& scenario);

}  // namespace orrery::scenarios
