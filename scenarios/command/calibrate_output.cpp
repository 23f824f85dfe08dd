#include "scenarios/command/calibrate_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/errors.hpp"

namespace orrery::scenarios {

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
  } catch (const OutputError& error) {
    fmt::print(stderr, "{}; samples stay in memory from here on\n", error.what());
    lines_.reset();
  }
}

void SampleLines::remove() {
  if (path_.empty()) return;
  lines_.reset();
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
