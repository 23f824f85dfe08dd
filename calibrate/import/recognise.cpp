// Recognises a log's format by its content, and passes the log to the format's reader.

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/import/importers.hpp"
#include "sim/input/byte_order_mark.hpp"
#include "sim/input/gunzip.hpp"
#include "sim/input/parse_json.hpp"
#include "sim/input/text.hpp"

namespace orrery::calibrate {

namespace {

constexpr std::size_t most_bytes = std::size_t{128} << 20;

/// Logs of training runs, which `orrery compare` reads.
bool logs_steps(std::string_view text) {
  return contains(text, "elapsed time per iteration") || contains(text, ":::MLLOG") ||
         (contains(text, "tps:") && contains(text, "step:"));
}

[[noreturn]] void refuse_unknown(const std::string& name, std::string_view text = {}) {
  if (logs_steps(text)) {
    throw InputError{name,
                     "is a log of training steps; `orrery compare SCENARIO LOG` lays it next to "
                     "its prediction"};
  }
  throw InputError{name, "unknown log format; known: " + known_formats()};
}

/// Errors  nothing was read, which a script could not tell from a measurement: InputError
Imported with_name(const Importer& importer, Imported imported) {
  if (imported.samples.empty() && !imported.facts_suffice) {
    const std::size_t unknown = imported.unknown.size();
    throw InputError{
        imported.file,
        fmt::format("no measurement found (format: {}{}); expected {}", importer.name,
                    unknown > 0 ? fmt::format(", {} lines not understood", unknown) : "",
                    importer.content)};
  }
  imported.format = importer.name;
  return imported;
}

Imported read_json(std::string_view text, const std::string& name) {
  const Document document = Document::from(parse_json(text, name, {.repeatable = every_key}), name);
  for (const Importer& each : importers()) {
    if (each.is_document && document.json().is_object() && each.is_document(document.json())) {
      return with_name(each, each.read_document(document.root()));
    }
  }
  refuse_unknown(name);
}

std::optional<Imported> read_lines(std::string_view text, const std::string& name) {
  const std::vector<LogLine> lines = log_lines(text);
  for (const LogLine& line : lines) {
    for (const Importer& each : importers()) {
      if (each.is_line && each.is_line(line.text))
        return with_name(each, each.read_lines(lines, name));
    }
  }
  for (const Importer& each : importers()) {
    if (each.is_text && each.is_text(text)) return with_name(each, each.read_lines(lines, name));
  }
  return std::nullopt;
}

/// The JSON object in text that fio writes around it (--output-format=normal,json): from the first
/// line that is `{` to the next line that begins with `}`.
std::optional<std::string_view> object_inside(std::string_view text) {
  const std::size_t begin = text.find("\n{\n");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find("\n}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(begin + 1, end + 1 - begin);
}

Imported import_recognised(std::string_view bytes, const std::string& name) {
  const std::string_view text = without_byte_order_mark(bytes);
  require_text(text, name);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError{name, "is empty"};
  if (text[first] == '{') return read_json(text, name);
  if (auto imported = read_lines(text, name)) return *std::move(imported);
  const auto object = object_inside(text);
  if (object && contains(*object, "\"fio version\"")) return read_json(*object, name);
  refuse_unknown(name, text);
}

}  // namespace

Imported import_text(std::string_view text, const std::string& name) {
  try {
    // Once only: there are gzip files that unpack to themselves.
    if (is_gzip(text)) return import_recognised(gunzipped(text, name, most_bytes), name);
    return import_recognised(text, name);
  } catch (const InputError& error) {
    // A problem may quote the log: `printable` keeps it on one line.
    if (error.place().empty()) throw InputError{printable(error.what())};
    throw InputError{printable(error.place()), printable(error.problem())};
  }
}

Imported import_log(const std::string& path) {
  return import_text(read_file(path, most_bytes), path);
}

}  // namespace orrery::calibrate
