#pragma once
// Where --trace writes: a file, packed if its name ends in .gz, or `-`, standard output.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/report/trace_file.hpp"

namespace orrery::scenarios {

/// Writes the trace, and one line for each file on standard error that says what was written.
/// Errors: OutputError
void save_trace(const Trace& trace, const std::string& path);
/// The same with arrows, counters and communicators.
void save_trace(const MarkedTrace& marked, const std::string& path);
/// Says that these files were written.
void say_written(const std::vector<WrittenTrace>& written);

/// The stream of a command's own answer: standard error if the trace goes to standard output.
/// Errors  `json`, whose document goes there, too: InputError
std::FILE* answer_stream(const std::optional<std::string>& trace, bool json);

}  // namespace orrery::scenarios
