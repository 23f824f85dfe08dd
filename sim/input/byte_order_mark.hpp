#pragma once
// The mark that some editors and shells put before UTF-8 text.

#include <string_view>

namespace orrery {

/// `text` without the byte order mark before it, if there is one.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

}  // namespace orrery
