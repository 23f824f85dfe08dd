#include "scenarios/command/calibrate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/errors.hpp"

namespace orrery::scenarios {

void write_json(const std::string& path, const Json& json) {
  std::ofstream file{path};
  file << json.dump(1) << "\n";
  if (!file.flush()) throw InputError{"--out", path + " cannot be written"};
}

void require_writable(const std::string& path) {
  const bool was_there = std::filesystem::exists(path);
  if (!std::ofstream{path, std::ios::app}) throw InputError{"--out", path + " cannot be written"};
  if (!was_there) std::filesystem::remove(path);
}

std::string samples_path(const std::string& profile) {
  std::filesystem::path path{profile};
  return path.replace_extension(".samples.json").string();
}

SampleLines::SampleLines(const std::optional<std::string>& profile) {
  if (!profile) return;
  path_ = samples_path(*profile) + "l";
  file_.open(path_, std::ios::trunc);
  if (!file_) throw InputError{"--out", path_ + " cannot be written"};
}

void SampleLines::add(const Json& sample) {
  if (path_.empty()) return;
  if (!file_) return;
  if (file_ << sample.dump() << "\n" << std::flush) return;
  fmt::print(stderr, "{}: no more samples can be written here; they stay in memory\n", path_);
}

void SampleLines::remove() {
  if (path_.empty()) return;
  file_.close();
  std::filesystem::remove(path_);
}

Json curves_json(const std::vector<calibrate::CurveCard>& curves) {
  Json json = Json::array();
  for (const auto& each : curves) {
    json.push_back({{"name", each.name},
                    {"points", each.points},
                    {"leave_out_error_pct",
                     each.leave_out_error_pct ? Json(*each.leave_out_error_pct) : Json(nullptr)}});
  }
  return json;
}

Json medians(const Json& raw) {
  Json rows = Json::array();
  for (const Json& point : raw) {
    for (Json part : point["parts"]) {
      std::vector<double> times = part["us"].get<std::vector<double>>();
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      part["value"] = times[times.size() / 2] / 1e6;
      part["unit"] = "s";
      part["count"] = times.size();
      part["ranks"] = point["ranks"];
      part["detail"] = point["name"];
      part.erase("us");
      rows.push_back(std::move(part));
    }
  }
  return rows;
}

void print_curves(const std::vector<calibrate::CurveCard>& curves) {
  fmt::print("  {:<28} {:>7} {:>12}\n", "curve", "points", "left out");
  for (const auto& each : curves) {
    const auto& error = each.leave_out_error_pct;
    fmt::print("  {:<28} {:>7} {:>12}\n", each.name, each.points,
               error ? fmt::format("{:.1f} %", *error) : "too few");
  }
}

}  // namespace orrery::scenarios
