#pragma once
// The files that a calibration writes.

#include <functional>
#include <optional>
#include <string>

#include "sim/input/document.hpp"
#include "sim/output/durable_file.hpp"  // require_writable
#include "sim/output/line_log.hpp"

namespace orrery::calibrate {

void write_json(const std::string& path, const Json& json);
/// "profile.samples.json" next to "profile.json".
std::string samples_path(const std::string& profile);

/// Samples as they come, a line of JSON each, in "profile.samples.jsonl". Without a profile to
/// write it does nothing; once the disk is full, samples are in memory alone until the profile is
/// written.
class SampleLines {
 public:
  /// Errors: OutputError
  explicit SampleLines(const std::optional<std::string>& profile);
  void add(const Json& sample);
  /// All of them are in the profile's samples by now.
  void remove();

 private:
  std::string path_;
  std::optional<LineLog> lines_;
};

}  // namespace orrery::calibrate
