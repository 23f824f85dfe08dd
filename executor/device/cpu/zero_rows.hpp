#pragma once
// Rows of zeros: an expert's slots that no token took. Products, activations and their gradients of
// them are zero, and so they are left out.

#include <algorithm>
#include <cstdint>

namespace orrery::executor::cpu {

template <class T>
bool is_zero(const T* row, std::int64_t width) {
  return std::all_of(row, row + width, [](T value) { return value == T{}; });
}

/// Calls visit(first, count) for the others, as many at once as lie one after another.
template <class T, class Visit>
void for_rows_in_use(const T* rows, std::int64_t count, std::int64_t width, Visit visit) {
  for (std::int64_t row = 0; row < count;) {
    std::int64_t end = row;
    while (end < count && !is_zero(rows + end * width, width)) ++end;
    if (end > row) visit(row, end - row);
    row = std::max(end, row + 1);
  }
}

}  // namespace orrery::executor::cpu
