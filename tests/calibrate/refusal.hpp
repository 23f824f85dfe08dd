#pragma once
// The words with which something is refused; empty if it is not.

#include <string>

#include "calibrate/import/import.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate::testing {

template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

inline std::string refused_log(std::string_view text) {
  return refusal([&] { import_text(text, "a.log"); });
}

}  // namespace orrery::calibrate::testing
