#pragma once
// Skips rows of zeros, which are an expert's slots that no token took. Their products, activations
// and gradients are zero, so nothing is computed for them.

#include <algorithm>
#include <cstdint>

namespace orrery::executor::cpu {

template <class T>
bool is_zero(const T* row, std::int64_t width) {
  return std::all_of(row, row + width, [](T value) { return value == T{}; });
}

/// Calls visit(first, count) for each run of consecutive rows that are not all zeros.
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
