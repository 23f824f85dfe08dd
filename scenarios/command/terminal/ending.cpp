#include "scenarios/command/terminal/ending.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "scenarios/command/commands.hpp"
#include "scenarios/exchange/sections.hpp"
#include "sim/input/document.hpp"
#include "sim/input/text.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* output_name = "standard output";

/// An error's place that is only a JSON pointer, such as "/plan/tensor", points into the scenario:
/// moves it from `file` to `pointer`.
void find_pointer(ErrorFields& fields) {
  constexpr std::array others{"name",          "tokens", "network",     "published", "placement",
                              "perturbations", "jobs",   "collectives", "run",       "data"};
  const bool whole = fields.pointer.empty();
  std::vector<const char*> members{section_names.begin(), section_names.end()};
  members.insert(members.end(), others.begin(), others.end());
  for (const char* member : members) {
    const std::string head = std::string{"/"} + member;
    const bool inside = fields.file == head || fields.file.rfind(head + "/", 0) == 0;
    if (whole && inside) fields.pointer.swap(fields.file);
  }
}

Failure output_failed(const OutputError& error) {
  return {.code = exit_output_failed,
          .line = error.what(),
          .fields = {.file = std::string{error.path()},
                     .pointer = {},
                     .found = std::string{error.problem()},
                     .accepted = {}}};
}

/// {fmt} throws std::system_error when a write to stdout fails: its error code, else EIO.
std::error_code reason_of(const std::exception& thrown) {
  const auto* error = dynamic_cast<const std::system_error*>(&thrown);
  return error ? error->code() : std::error_code{EIO, std::generic_category()};
}

}  // namespace

Failure failure_of(const std::exception& thrown) {
  if (const auto* error = dynamic_cast<const InputError*>(&thrown)) {
    Failure failure{.code = exit_wrong_input, .line = error->what(), .fields = split_error(*error)};
    find_pointer(failure.fields);
    return failure;
  }
  if (const auto* error = dynamic_cast<const OutputError*>(&thrown)) return output_failed(*error);
  if (std::ferror(stdout) != 0) return output_failed({output_name, reason_of(thrown)});
  return {.code = exit_internal_error,
          .line = thrown.what(),
          .fields = {.file = {}, .pointer = {}, .found = thrown.what(), .accepted = {}}};
}

Failure failure_of(int code, const std::string& line) {
  Failure failure{.code = code, .line = line, .fields = {{}, {}, line, {}}};
  const std::size_t place = line.find(": ");
  if (code == exit_wrong_input && place != std::string::npos) {
    failure.fields = split_error({line.substr(0, place), line.substr(place + 2)});
  }
  return failure;
}

int report_failure(const Failure& failure, bool json) {
  const char* whose = failure.code == exit_internal_error ? "internal error: " : "";
  fmt::print(stderr, "{}{}\n", whose, printable(failure.line));
  if (json) print_error(failure);
  return failure.code;
}

void print_error(const Failure& failure) {
  const Json document{{"error",
                       {{"file", or_null(printable(failure.fields.file))},
                        {"pointer", or_null(printable(failure.fields.pointer))},
                        {"found", or_null(printable(failure.fields.found))},
                        {"accepted", or_null(printable(failure.fields.accepted))},
                        {"code", failure.code}}}};
  const std::string text = document.dump(2) + "\n";
  // If stdout itself failed, this write fails too; the exit code reports it.
  [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened for the opposite direction, so that using it fails as a closed descriptor would.
    ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw OutputError{output_name, errno != 0 ? errno : EIO};
}

}  // namespace orrery::scenarios
