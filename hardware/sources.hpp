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

/// The source of a number that the user states without one.
inline constexpr std::string_view given_source = "given";

/// Gives the number at `pointer` (keys as they are, without JSON pointer's escapes) another source,
/// in the innermost object at or below `root` whose map covers it, where it wins; in `root` if none
/// does.
void set_source(Json& root, std::string_view pointer, std::string_view source);

/// After `value` replaced the one at `pointer` of `root`: its numbers that do not bring a source,
/// and to which an enclosing object gives that of the old value, are "given".
void mark_given(Json& root, const std::string& pointer, const Json& value);

}  // namespace orrery::hardware
