#pragma once
// Every document that a command prints names itself: what it was made with, and what was asked.

#include <CLI/CLI.hpp>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// The application whose flags documents state; main says it before it parses.
void set_asking(const CLI::App& application);

/// `document` after `orrery{version, commit, catalogue}`, `command`, `inputs{flag: value}` of the
/// flags that were given, and `changes[{pointer, value}]` of --set.
Json named_document(const Json& document);

/// Prints it on standard output.
void print_document(const Json& document);

}  // namespace orrery::scenarios
