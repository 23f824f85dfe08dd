#pragma once
// Helpers that write parts of a Program as text, appended to one buffer.

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "models/program/program.hpp"

namespace orrery::models {

using TextBuffer = fmt::memory_buffer;

template <class... Arguments>
void put(TextBuffer& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
}

/// A block with its operands and operations; a phase.
void put_block(TextBuffer& text, const Block& block, const Program& program);
void put_phase(TextBuffer& text, const Phase& phase, const Program& program);

}  // namespace orrery::models
