#include "calibrate/output.hpp"

#include <filesystem>

#include "sim/errors.hpp"

namespace orrery::calibrate {

void write_json(const std::string& path, const Json& json) {
  write_durably(path, json.dump(1) + "\n");
}

std::string samples_path(const std::string& profile) {
  std::filesystem::path path{profile};
  return path.replace_extension(".samples.json").string();
}

SampleLines::SampleLines(const std::optional<std::string>& profile) {
  if (!profile) return;
  path_ = samples_path(*profile) + "l";
  std::error_code none;
  std::filesystem::remove(path_, none);
  lines_.emplace(path_);
}

void SampleLines::add(const Json& sample) {
  if (!lines_) return;
  try {
    lines_->add(sample.dump());
  } catch (const OutputError&) {
    lines_.reset();
  }
}

void SampleLines::remove() {
  if (path_.empty()) return;
  lines_.reset();
  std::filesystem::remove(path_);
}

}  // namespace orrery::calibrate
