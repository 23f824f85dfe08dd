#include "hardware/dtype.hpp"

namespace orrery::hardware {

std::optional<DType> dtype_named(std::string_view text) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    if (name(type) == text) return type;
  }
  return std::nullopt;
}

}  // namespace orrery::hardware
