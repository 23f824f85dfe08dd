#pragma once
// A memory copy that also allows what std::memcpy does not: overlap, and null pointers if the size
// is 0.

#include <cstring>

namespace orrery::executor {

/// `to` and `from` may be equal or overlap; both may be null if `size` is 0.
template <class Size>
void copy_bytes(void* to, const void* from, Size size) {
  if (size > 0) std::memmove(to, from, static_cast<std::size_t>(size));
}

}  // namespace orrery::executor
