#pragma once
// Parses JSON text into a tree. Refuses text that is not JSON, more than 256 levels and, unless
// asked not to, a key given twice. Nothing is built below the level limit, so deep nesting cannot
// exhaust the stack.

#include <string>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery {

inline constexpr std::size_t json_levels = 256;

/// A key given twice in an object: a user's mistake, or how another tool writes a list (fio).
enum class RepeatedKeys : std::uint8_t { refused, last_counts };

/// Errors: `name: is empty`, `name:line 3: PROBLEM`, `name:/pointer: duplicate key`.
Json parse_json(std::string_view text, const std::string& name,
                RepeatedKeys repeated = RepeatedKeys::refused);

/// `key` as a step of a JSON pointer (RFC 6901): "/key" with ~ and / escaped.
std::string pointer_step(std::string_view key);

}  // namespace orrery
