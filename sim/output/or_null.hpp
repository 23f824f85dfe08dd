#pragma once
// What may be unknown, as JSON: null without a value, and for an empty text; bytes are counted.

#include <optional>
#include <string>

#include "sim/input/document.hpp"

namespace orrery {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json or_null(const std::optional<Bytes>& value) {
  return value ? Json(value->count()) : Json(nullptr);
}
inline Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace orrery
