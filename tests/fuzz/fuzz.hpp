#pragma once
// What all fuzzers promise: any bytes at all are either read or refused by an InputError of one
// line. Everything else (another exception, a crash, a sanitizer's finding) ends the run.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/errors.hpp"

namespace orrery {

/// Runs `read` on the input; false if it was refused.
template <class Read>
bool survives(const Read& read) {
  try {
    read();
    return true;
  } catch (const InputError& error) {
    for (const char* letter = error.what(); *letter != '\0'; ++letter) {
      if (static_cast<unsigned char>(*letter) < 0x20) std::abort();  // not one line
    }
    return false;
  }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace orrery
