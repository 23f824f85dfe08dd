// Reports the results of a calibration, as text and as JSON.

#include <fmt/format.h>

#include "calibrate/calibrate.hpp"
#include "calibrate/spelled.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::calibrate {

namespace {

/// The median of every part of every point with its description, without the single runs.
Json medians(const Json& raw) {
  Json rows = Json::array();
  for (const Json& point : raw) {
    for (Json part : point.at("parts")) {
      part["value"] = seconds(median_time(part));
      part["unit"] = "s";
      part["count"] = part["us"].size();
      part["ranks"] = point.at("ranks");
      part["detail"] = point.at("name");
      part.erase("us");
      rows.push_back(std::move(part));
    }
  }
  return rows;
}

std::string curves_table(const std::vector<FittedCurve>& curves) {
  std::string text = fmt::format("  {:<28} {:>7} {:>12}\n", "curve", "points", "left out");
  for (const FittedCurve& each : curves) {
    const auto& error = each.leave_out_error_pct;
    text += fmt::format("  {:<28} {:>7} {:>12}\n", each.name, each.points,
                        error ? fmt::format("{:.1f} %", *error) : "too few");
  }
  return text;
}

std::string known(const std::optional<Time>& time) {
  return time ? format(*time) : std::string{"unknown"};
}

std::string launches_text(const LaunchCosts& launch) {
  std::string text =
      fmt::format("  host, one launch: forward {}, backward {}, a small kernel {}\n",
                  known(launch.forward), known(launch.backward), known(launch.small));
  if (launch.graph) {
    text += fmt::format(
        "  host, a small layer as one CUDA graph: {}; on the queue, one of its kernels every {}\n",
        format(*launch.graph), known(launch.graph_kernel));
  }
  if (launch.communication) {
    text += fmt::format("  host, one collective of {} rank{}: {}\n", launch.communication_ranks,
                        launch.communication_ranks > 1 ? "s" : "", format(*launch.communication));
  }
  return text + fmt::format("  queue: a small kernel every {}, a timing mark {}\n",
                            known(launch.small_on_queue), format(launch.mark));
}

std::string storage_text(const Findings& found) {
  std::string text;
  if (found.storage.read && found.storage.write && found.random_read) {
    text += fmt::format("  storage: read {}, write {}, a read of 4 KiB at a random place {}\n",
                        format(*found.storage.read), format(*found.storage.write),
                        format(*found.random_read));
  }
  for (const DecodingRate& each : found.decoding) {
    text += each.pixels > 0
                ? fmt::format("  a core decodes {:.0f} {} a second ({:.0f} bytes, {})\n",
                              each.per_core, each.format, each.bytes, each.library)
                : fmt::format("  a core decodes {:.3g} tokens of {} a second\n", each.per_core,
                              each.format);
  }
  return text;
}

std::string counts_text(const Findings& found) {
  std::string text;
  const auto add = [&](int count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", count, what);
  };
  add(found.discarded_runs, "disturbed runs discarded");
  add(found.discarded_points, "disturbed points discarded");
  add(found.disturbed_points, "points kept though disturbed");
  add(found.points_left_out, "points left out by the budget");
  return text.empty() ? text : text + "\n";
}

Json decoding_rates(const Findings& found) {
  Json rates = Json::array();
  for (const DecodingRate& each : found.decoding) {
    rates.push_back({{"format", each.format},
                     {"per_core", each.per_core},
                     {"bytes", each.bytes > 0 ? Json(each.bytes) : Json(nullptr)},
                     {"library", or_null(each.library)}});
  }
  return rates;
}

}  // namespace

Json to_json(const std::vector<FittedCurve>& curves) {
  Json json = Json::array();
  for (const FittedCurve& each : curves) {
    json.push_back({{"name", each.name},
                    {"points", each.points},
                    {"leave_out_error_pct", or_null(each.leave_out_error_pct)}});
  }
  return json;
}

Json to_json(const CalibrateRequest& request, const CalibrateAnswer& answer) {
  const Findings& found = answer.findings;
  Json json{{"profile", or_null(request.out)},
            {"samples", medians(found.raw)},
            {"curves", answer.profile ? to_json(answer.profile->curves) : Json::array()},
            {"machine", to_json(found.machine)},
            {"decoding", decoding_rates(found)},
            {"missing", found.missing},
            {"failures", found.failures},
            {"discarded_runs", found.discarded_runs},
            {"disturbed_points", found.disturbed_points},
            {"discarded_points", found.discarded_points},
            {"points_left_out", found.points_left_out},
            {"setting_up_s", seconds(found.setting_up)}};
  if (!found.gpu) return json;
  json["gpu"] = found.gpu->name;
  json["gpus"] = found.gpu->count;
  json["versions"] = found.gpu->versions;
  return json;
}

std::string table_of(const CalibrateAnswer& answer) {
  const Findings& found = answer.findings;
  std::string text = found.gpu
                         ? fmt::format("{} x {}, {}", found.gpu->count, printable(found.gpu->name),
                                       printable(found.gpu->versions))
                         : source_line(found.machine);
  text += "\n";
  if (answer.profile && !answer.profile->curves.empty()) {
    text += curves_table(answer.profile->curves);
  }
  for (const hardware::Concurrency& each : found.concurrency) {
    text += fmt::format(
        "  {} concurrent ranks: GEMMs take {:.2f} times as long, other kernels {:.2f}\n",
        each.ranks, each.gemm, each.memory_bound);
  }
  if (found.gpu) text += launches_text(found.launch);
  if (found.gpu && answer.profile) {
    text +=
        "  " + answer.profile->cluster.at("node").at("gpu").at("notes").get<std::string>() + "\n";
  }
  text += storage_text(found);
  for (const std::string& each : found.missing) text += "  not measured: " + each + "\n";
  for (const SustainedLoad& each : found.loads) {
    text += fmt::format("  {}: {} isolated, {} under sustained load\n", each.what,
                        format(each.isolated), format(each.sustained));
  }
  if (found.gpu) {
    text += fmt::format("  setting up points took {} (not counted in the budget)\n",
                        format(found.setting_up));
  }
  return text + counts_text(found);
}

}  // namespace orrery::calibrate
