#pragma once
// Numbers of a scenario that are read and priced by nothing yet. `show scenario` says so, `--set`
// on one is an assumption, and a test demands that every other number moves a figure.

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

/// Why nothing prices the number at a pointer; nothing where something does.
std::optional<std::string_view> why_unpriced(std::string_view pointer);

/// Pointer to reason of every value of a scenario that is in the table.
Json unpriced_in(const Json& scenario);

}  // namespace orrery::scenarios
