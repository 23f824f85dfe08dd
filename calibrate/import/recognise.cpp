// Which log is it, by what stands in it; and the way from a file to its reader.

#include <algorithm>

#include "calibrate/import/log_lines.hpp"
#include "sim/input/text.hpp"

namespace orrery::calibrate {

namespace {

constexpr std::size_t most_bytes = std::size_t{128} << 20;
constexpr std::string_view known_formats =
    "nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, perftest, fio JSON, BabelStream, Kineto";

std::optional<LogFormat> format_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  if (json.contains("fio version")) return LogFormat::fio;
  if (json.contains("traceEvents")) return LogFormat::kineto;
  if (json.contains("test_info") && json.contains("results")) return LogFormat::perftest_json;
  if (json.contains("results") && json.contains("config")) return LogFormat::nccl_tests_json;
  return std::nullopt;
}

std::optional<LogFormat> format_of(const LogLine& line) {
  const std::string_view text = line.text;
  if (contains(text, "algbw") && contains(text, "busbw")) return LogFormat::nccl_tests;
  if (starts_with(text, "# OSU ")) return LogFormat::osu;
  if (contains(text, "#bytes") && contains(text, "#iterations")) return LogFormat::perftest;
  const bool table = starts_with(text, "Function") && contains(text, "B/s");
  if (table || starts_with(text, "function,num_times")) return LogFormat::babelstream;
  return std::nullopt;
}

Imported read_text(LogFormat format, const std::vector<LogLine>& lines, const std::string& name) {
  switch (format) {
    case LogFormat::osu:
      return read_osu(lines, name);
    case LogFormat::perftest:
      return read_perftest(lines, name);
    case LogFormat::babelstream:
      return read_babelstream(lines, name);
    case LogFormat::nccl_log:
      return read_nccl_log(lines, name);
    default:
      return read_nccl_tests(lines, name);
  }
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  throw InputError{name, "no log that is known; known: " + std::string{known_formats}};
}

Imported read_json(std::string_view text, const std::string& name) {
  const Document document = Document::parse(text, name);
  const auto format = format_of(document.json());
  if (!format) refuse_unknown(name);
  if (*format == LogFormat::fio) return read_fio(document.root());
  if (*format == LogFormat::kineto) return read_kineto(document.root());
  if (*format == LogFormat::perftest_json) return read_perftest_json(document.root());
  return read_nccl_tests_json(document.root());
}

/// The JSON object in text that fio writes around it (--output-format=normal,json): from the first
/// `{` at a line's begin to the next `}` there.
std::optional<std::string_view> object_inside(std::string_view text) {
  const std::size_t begin = text.find("\n{\n");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find("\n}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(begin + 1, end + 1 - begin);
}

}  // namespace

std::string_view name(LogFormat format) {
  constexpr std::string_view names[] = {"nccl-tests", "nccl-tests JSON", "NCCL debug log",
                                        "OSU",        "perftest",        "perftest JSON",
                                        "fio",        "BabelStream",     "Kineto"};
  return names[static_cast<int>(format)];
}

namespace {

Imported import_recognised(std::string_view text, const std::string& name) {
  if (starts_with(text, "\x1f\x8b")) {
    throw InputError{name, "is compressed; unpack it first (gunzip -k)"};
  }
  require_text(text, name);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError{name, "is empty"};
  if (text[first] == '{') return read_json(text, name);
  const std::vector<LogLine> lines = log_lines(text);
  for (const LogLine& line : lines) {
    if (const auto format = format_of(line)) return read_text(*format, lines, name);
  }
  if (contains(text, "NCCL INFO")) return read_nccl_log(lines, name);
  const auto object = object_inside(text);
  if (object && contains(*object, "\"fio version\"")) return read_json(*object, name);
  refuse_unknown(name);
}

}  // namespace

Imported import_text(std::string_view text, const std::string& name) {
  try {
    return import_recognised(text, name);
  } catch (const InputError& error) {
    // A problem may quote the log: nothing in it breaks the line.
    if (error.place().empty()) throw InputError{printable(error.what())};
    throw InputError{printable(error.place()), printable(error.problem())};
  }
}

Imported import_log(const std::string& path) {
  return import_text(read_file(path, most_bytes), path);
}

}  // namespace orrery::calibrate
