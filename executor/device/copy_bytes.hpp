#pragma once
// Copies that allow what std::memcpy does not: nothing from nowhere.

#include <cstring>

namespace orrery::executor {

/// The two may be the same or overlap; of size 0 they may be null.
template <class Size>
void copy_bytes(void* to, const void* from, Size size) {
  if (size > 0) std::memmove(to, from, static_cast<std::size_t>(size));
}

}  // namespace orrery::executor
