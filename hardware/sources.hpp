#pragma once
// Where numbers of a JSON object come from. Any object may carry `sources`, a map from a pointer
// relative to that object to the source of every number at or below it. The innermost object whose
// map covers the number wins, and in it the longest pointer. `"unconfirmed"` is a source too: no
// document is known for this number yet. The text of a source is not checked.

#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::hardware {

inline constexpr std::string_view unconfirmed_source = "unconfirmed";

/// One number (a JSON number or a quantity with its unit) and its source, empty if it has none.
struct SourcedNumber {
  std::string pointer;
  std::string source;
};

/// All numbers at or below `value`, in the order written.
std::vector<SourcedNumber> sourced_numbers(const Json& value);

/// How many of them are unconfirmed.
int count_unconfirmed(const Json& value);

/// Source of the number at `pointer` ("/dense_peak/bf16"); empty if none is given.
std::string source_of(const Json& object, std::string_view pointer);

}  // namespace orrery::hardware
