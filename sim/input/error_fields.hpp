#pragma once
// Splits an error line into its fields, for programs that read `--json`.

#include <string>

#include "sim/errors.hpp"

namespace orrery {

/// The fields of an error line; a field that the line does not state is empty.
struct ErrorFields {
  std::string file;     // or the flag, or the environment's variable
  std::string pointer;  // a JSON pointer, or `line 3: column 'c'` of a table
  std::string found;    // what is there, or what is wrong with it
  std::string accepted;
};

/// Relies on the form of all error lines: `FILE:/POINTER: expected ACCEPTED, found FOUND`, or
/// `FILE:line 3: FOUND; accepted: ACCEPTED` (`known:` for names).
ErrorFields split_error(const InputError& error);

}  // namespace orrery
