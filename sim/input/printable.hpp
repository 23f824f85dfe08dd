#pragma once
// Whether a text of the user's can be shown as it is; `printable` (text.hpp) makes it so.

#include <string_view>

namespace orrery {

/// Whether `text` is UTF-8 without characters that a terminal obeys: control characters, line ends,
/// marks that change the direction of what follows.
bool is_printable(std::string_view text);

}  // namespace orrery
