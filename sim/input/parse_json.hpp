#pragma once
// Parses JSON text into a tree. Refuses text that is not JSON, more than 256 levels and a key given
// twice. Nothing is built below the level limit, so deep nesting cannot exhaust the stack.

#include <string>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery {

inline constexpr std::size_t json_levels = 256;

/// Errors: `name: is empty`, `name:line 3: PROBLEM`, `name:/pointer: duplicate key`.
Json parse_json(std::string_view text, const std::string& name);

/// `key` as a step of a JSON pointer (RFC 6901): "/key" with ~ and / escaped.
std::string pointer_step(std::string_view key);

}  // namespace orrery
