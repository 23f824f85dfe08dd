#pragma once
// How the command ends: what was printed has left it, or one line says why there is no answer.

#include <exception>
#include <string>

#include "sim/input/mistake.hpp"

namespace orrery::scenarios {

/// Why there is no answer.
struct Failure {
  int code = 0;
  std::string line;   // for people
  Mistake mistake{};  // for programs; of our own faults only `found`
};

/// Of whatever a command threw.
Failure failure_of(const std::exception& thrown);
/// Of a line that came without its exception, as from another rank.
Failure failure_of(int code, const std::string& line);

/// One line on stderr; with `json` also the document of `print_error`. Returns the exit code.
int report_failure(const Failure& failure, bool json);
/// One document on stdout: `{"error": {"file", "pointer", "found", "accepted", "code"}}`.
void print_error(const Failure& failure);

/// A descriptor that the caller closed must not become a file of ours that is then printed into.
void hold_standard_streams();

/// Writes out what was printed. Errors: OutputError
void flush_output();

}  // namespace orrery::scenarios
