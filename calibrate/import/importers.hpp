#pragma once
// One row for each format of log: how it is recognised by content, and its reader. A new importer
// is a file with a reader, declared in log_lines.hpp, and a row in importers.cpp.

#include <span>
#include <string_view>
#include <vector>

#include "calibrate/import/log_lines.hpp"

namespace orrery::calibrate {

struct Importer {
  std::string_view name;        // "nccl-tests JSON"
  std::string_view title = {};  // in the list of known formats; empty: covered by an earlier row
  std::string_view content = "rows of results";  // what a log of this format must have
  /// For a JSON format; null: the format is text.
  bool (*is_document)(const Json& json) = nullptr;
  Imported (*read_document)(const Node& root) = nullptr;
  /// For a text format: `is_line` recognises it by one line; `is_text`, asked if no line of any
  /// format does, by the whole text.
  bool (*is_line)(std::string_view line) = nullptr;
  bool (*is_text)(std::string_view text) = nullptr;
  Imported (*read_lines)(const std::vector<LogLine>& lines, const std::string& file) = nullptr;
};

/// The first row that recognises a log reads it.
std::span<const Importer> importers();

/// "nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, ..."
std::string known_formats();

}  // namespace orrery::calibrate
