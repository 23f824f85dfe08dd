#include "scenarios/drawing/markup.hpp"

#include <algorithm>

#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

/// Whether XML allows a character, given as UTF-8: no control characters but tab and line ends, not
/// U+FFFE and U+FFFF.
bool allowed(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (first < 0x20) return first == '\t' || first == '\n' || first == '\r';
  return character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
}

}  // namespace

std::string markup(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view next = text.substr(0, std::max<std::size_t>(length, 1));
    switch (next.front()) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        if (length > 0 && allowed(next)) {
          safe += next;
        } else {
          safe += "\xEF\xBF\xBD";
        }
    }
    text.remove_prefix(next.size());
  }
  return safe;
}

std::string markdown(std::string_view text) {
  constexpr std::string_view special = "\\|[]`";
  std::string safe;
  for (const char c : printable(text)) {
    if (special.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string markdown_code(std::string_view text) {
  std::string safe = printable(text);
  std::ranges::replace(safe, '`', '\'');
  return safe;
}

std::string markdown_page(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  }
  return safe;
}

}  // namespace orrery::scenarios
