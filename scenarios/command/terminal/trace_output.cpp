#include "scenarios/command/terminal/trace_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"
#include "sim/trace/chrome.hpp"

namespace orrery::scenarios {

namespace {

bool is_standard_output(const std::string& path) {
  return path == "-";
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
}

void say(const std::string& line) {
  if (std::fputs(line.c_str(), stderr) < 0) throw OutputError{"standard error", errno};
}

}  // namespace

void save_trace(const Trace& trace, const std::string& path) {
  save_trace(MarkedTrace{trace, {}}, path);
}

void save_trace(const MarkedTrace& marked, const std::string& path) {
  if (!is_standard_output(path)) return say_written({write_trace_file(marked, path)});
  std::uintmax_t bytes = 0;
  const std::size_t events = write_chrome(marked.trace, marked.marks, [&](std::string_view piece) {
    if (!write_all(STDOUT_FILENO, piece)) throw OutputError{"standard output", errno};
    bytes += piece.size();
  });
  say(fmt::format("wrote the trace to standard output, {} events, {}\n", events, size_text(bytes)));
}

void say_written(const std::vector<WrittenTrace>& written) {
  for (const WrittenTrace& each : written) {
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(each.path, unknown);
    say(fmt::format("wrote the trace {}, {} events{}\n", printable(each.path), each.events,
                    unknown ? "" : ", " + size_text(bytes)));
  }
}

std::FILE* answer_stream(const std::optional<std::string>& trace, bool json) {
  if (!trace || !is_standard_output(*trace)) return stdout;
  if (json)
    throw InputError{"--trace", "'-' is standard output, where --json writes; expected a file"};
  return stderr;
}

}  // namespace orrery::scenarios
