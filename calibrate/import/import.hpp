#pragma once
// Imports measurements from logs of other tools. The format is recognised by content, never by
// name. Lines that no format knows are counted and shown, never silently skipped; what cannot be
// trusted (a run of one rank, wrong results, a failed job) is refused with its place in the log.
// Limits: 128 MiB a file, unpacked where gzip packed it, and 256 levels of JSON.

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/sample.hpp"

namespace orrery::calibrate {

struct UnknownLine {
  std::size_t line = 0;
  std::string text;
};

struct Imported {
  std::string_view format;  // the importer's name: "nccl-tests"
  std::string file;
  std::vector<Sample> samples;
  std::vector<UnknownLine> unknown;  // all of them
  std::vector<std::string> notes;    // what was inferred, dropped or is missing
  Json facts = Json::object();       // of the log as a whole: version, ranks, rings, totals
  bool facts_suffice = false;        // they are worth reading without a sample
};

/// Errors  unreadable or unknown content, a log without a measurement, a malformed row, what is
///         refused: InputError
Imported import_log(const std::string& path);
/// The same for a text in memory, which errors call `name`.
Imported import_text(std::string_view text, const std::string& name);

}  // namespace orrery::calibrate
