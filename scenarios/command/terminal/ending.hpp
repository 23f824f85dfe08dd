#pragma once
// How the command ends: stdout is flushed, or a failure is reported as one line on stderr, with
// --json also as a JSON document.

#include <exception>
#include <string>

#include "sim/input/error_fields.hpp"

namespace orrery::scenarios {

/// A failed command: its exit code and error message.
struct Failure {
  int code = 0;
  std::string line;      // for people
  ErrorFields fields{};  // for programs; internal errors fill only `found`
};

/// The failure for any exception that a command threw.
Failure failure_of(const std::exception& thrown);
/// The failure for an error line that came without its exception, as from another rank.
Failure failure_of(int code, const std::string& line);

/// One line on stderr; with `json` also the document of `print_error`. Returns the exit code.
int report_failure(const Failure& failure, bool json);
/// One document on stdout: `{"error": {"file", "pointer", "found", "accepted", "code"}}`.
void print_error(const Failure& failure);

/// Opens /dev/null on standard descriptors that the caller closed: otherwise a file opened later
/// would get such a descriptor and receive what is printed.
void hold_standard_streams();

/// Flushes stdout. Errors: OutputError
void flush_output();

}  // namespace orrery::scenarios
