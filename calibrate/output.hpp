#pragma once
// The files that a calibration writes.

#include <optional>
#include <string>

#include "sim/input/document.hpp"
#include "sim/output/durable_file.hpp"  // require_writable
#include "sim/output/line_log.hpp"

namespace orrery::calibrate {

void write_json(const std::string& path, const Json& json);
/// "profile.samples.json" next to "profile.json".
std::string samples_path(const std::string& profile);

/// Appends each sample to "profile.samples.jsonl" as a line of JSON when it is measured. Does
/// nothing without a profile to write; once a line cannot be written (a full disk), samples are
/// kept in memory only, until the profile is written.
class SampleLines {
 public:
  /// Errors: OutputError
  explicit SampleLines(const std::optional<std::string>& profile);
  void add(const Json& sample);
  /// Removes the file, after the profile's samples have been written.
  void remove();

 private:
  std::string path_;
  std::optional<LineLog> lines_;
};

}  // namespace orrery::calibrate
