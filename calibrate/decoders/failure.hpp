#pragma once
// What a library of images that fails throws.

#include <stdexcept>
#include <string>

namespace orrery::calibrate {

/// Errors  std::runtime_error `LIBRARY: WHY`, which the harness lists
[[noreturn]] inline void fail_codec(const char* library, const char* why) {
  throw std::runtime_error{std::string{library} + ": " + why};
}

}  // namespace orrery::calibrate
