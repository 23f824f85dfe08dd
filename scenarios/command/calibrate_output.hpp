#pragma once
// What `orrery calibrate` writes and prints, of a processor and of GPUs.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"
#include "sim/output/durable_file.hpp"  // require_writable
#include "sim/output/line_log.hpp"

namespace orrery::scenarios {

void write_json(const std::string& path, const Json& json);
/// "profile.samples.json" next to "profile.json".
std::string samples_path(const std::string& profile);

/// Samples as they come, a line of JSON each, in "profile.samples.jsonl": what is left of a
/// calibration that is killed. Without a profile to write it does nothing; a disk that is full by
/// then is reported, not an error: the profile's own samples come at the end.
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

Json curves_json(const std::vector<calibrate::CurveCard>& curves);
/// Every point's median with what it was, without the single runs.
Json medians(const Json& raw);
void print_curves(const std::vector<calibrate::CurveCard>& curves);

}  // namespace orrery::scenarios
