#pragma once
// An error line taken apart, for programs that read `--json`.

#include <string>

#include "sim/errors.hpp"

namespace orrery {

/// What a line says; empty: it does not.
struct Mistake {
  std::string file;     // or the flag, or the environment's variable
  std::string pointer;  // a JSON pointer, or `line 3: column 'c'` of a table
  std::string found;    // what is there, or what is wrong with it
  std::string accepted;
};

/// By the form that every line has: `FILE:/POINTER: expected ACCEPTED, found FOUND`, or `FILE:line
/// 3: FOUND; accepted: ACCEPTED` (`known:` for names).
Mistake mistake_of(const InputError& error);

}  // namespace orrery
