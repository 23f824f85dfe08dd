#pragma once
// Parses JSON text into a tree. Refuses text that is not JSON, more than 256 levels and, unless
// asked not to, a key given twice. Nothing is built below the level limit, so deep nesting cannot
// exhaust the stack.

#include <string>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery {

inline constexpr std::size_t json_levels = 256;

/// What files of other tools hold that is not JSON, or is a mistake in files of ours.
struct JsonLeniency {
  /// NaN, Infinity and -Infinity, which Python writes and reads, become strings of that name: where
  /// a number is expected, the error names them.
  bool python_numbers = false;
  /// Keys that an object may have twice; the last counts. None: a user's mistake.
  bool (*repeatable)(std::string_view key) = nullptr;
};
/// For tools that write a list so (fio).
inline bool every_key(std::string_view /*key*/) {
  return true;
}

/// Leaves out a text `$schema` of the whole document, by which editors check it.
/// Errors: `name: is empty`, `name:line 3: PROBLEM`, `name:/pointer: duplicate key`.
Json parse_json(std::string_view text, const std::string& name, const JsonLeniency& leniency = {});

/// `key` as a step of a JSON pointer (RFC 6901): "/key" with ~ and / escaped.
std::string pointer_step(std::string_view key);

}  // namespace orrery
