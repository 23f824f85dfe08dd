// orrery calibrate: measure this machine with the executor's own kernels, or import others' logs,
// into a profile that --cluster takes.

#include "calibrate/campaign.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "calibrate/import/import.hpp"
#include "executor/cpu/cpu_device.hpp"
#include "executor/errors.hpp"
#include "hardware/catalogue.hpp"
#include "scenarios/command/calibrate_blocks.hpp"
#include "scenarios/command/calibrate_world.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/progress.hpp"
#include "scenarios/sections.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

struct CalibrateFlags {
  std::vector<std::string> logs;
  std::string backend = "cpu";
  std::string budget = "60 s", fabric = "tcp";
  std::vector<int> ranks{1, 2};
  std::optional<std::string> out, cluster;
  std::uint64_t seed = 1;
  bool json = false;
};

void write_json(const std::string& path, const Json& json) {
  std::ofstream file{path};
  file << json.dump(1) << "\n";
  if (!file.flush()) throw InputError{"--out", path + " cannot be written"};
}

/// Told before anything is measured; a profile that is there stays as it is.
void require_writable(const std::string& path) {
  const bool was_there = std::filesystem::exists(path);
  if (!std::ofstream{path, std::ios::app}) throw InputError{"--out", path + " cannot be written"};
  if (!was_there) std::filesystem::remove(path);
}

/// "profile.samples.json" beside "profile.json".
std::string samples_path(const std::string& profile) {
  std::filesystem::path path{profile};
  return path.replace_extension(".samples.json").string();
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

// ---- importing

/// The cluster that imported tables are laid over, or the tables alone.
Json imported_profile(const CalibrateFlags& flags, const std::vector<calibrate::Sample>& samples) {
  Json profile = Json::object();
  if (flags.cluster) {
    profile = is_path(*flags.cluster)
                  ? hardware::expand_cluster(Document::load(*flags.cluster).root())
                  : hardware::Catalogue::cluster(*flags.cluster);
  }
  const auto tables = calibrate::collective_tables(samples);
  if (!tables.empty()) profile["measured_collectives"] = calibrate::to_json(tables);
  for (const auto& sample : samples) {
    const auto* rate = std::get_if<Bandwidth>(&sample.value);
    if (!rate || (sample.quantity != "storage.read" && sample.quantity != "storage.write"))
      continue;
    profile["storage"][sample.quantity.substr(8)] = fmt::format("{} B/s", rate->count());
  }
  std::string source = "imported from";
  for (const std::string& log : flags.logs) {
    source += " " + std::filesystem::path{log}.filename().string();
  }
  if (profile.contains("measured_collectives")) {
    profile["sources"]["/measured_collectives"] = source;
  }
  if (profile.contains("storage")) profile["sources"]["/storage"] = source;
  return profile;
}

Json unknown_json(const calibrate::Imported& log) {
  Json lines = Json::array();
  for (const auto& each : log.unknown) {
    lines.push_back({{"line", each.line}, {"text", printable(each.text, 200)}});
  }
  return lines;
}

void print_import(const calibrate::Imported& log) {
  fmt::print("{}: {}, {} samples\n", printable(log.file), calibrate::name(log.format),
             log.samples.size());
  std::map<std::string, std::pair<std::size_t, const calibrate::Sample*>> by_quantity;
  for (const auto& sample : log.samples) {
    auto& [count, last] = by_quantity[sample.quantity];
    ++count;
    last = &sample;
  }
  for (const auto& [quantity, entry] : by_quantity) {
    const calibrate::Sample& last = *entry.second;
    fmt::print("  {:<24} {:>5}  last {}{}{}{}\n", quantity, entry.first,
               calibrate::format(last.value),
               last.size ? fmt::format(" for {} B", last.size->count()) : "",
               last.ranks ? fmt::format(", {} ranks", *last.ranks) : "",
               last.device.empty() ? "" : ", " + printable(last.device));
  }
  for (const std::string& note : log.notes) fmt::print("  note: {}\n", printable(note));
  if (log.unknown.empty()) return;
  constexpr std::size_t shown = 5;
  fmt::print("  {} lines not understood:\n", log.unknown.size());
  for (std::size_t i = 0; i < std::min(shown, log.unknown.size()); ++i) {
    fmt::print("    line {}: {}\n", log.unknown[i].line, printable(log.unknown[i].text, 100));
  }
}

void import_logs(const CalibrateFlags& flags) {
  std::vector<calibrate::Sample> samples;
  Json logs = Json::array(), rows = Json::array();
  for (const std::string& path : flags.logs) {
    const calibrate::Imported log = calibrate::import_log(path);
    if (!flags.json) print_import(log);
    logs.push_back({{"file", path},
                    {"format", std::string{calibrate::name(log.format)}},
                    {"samples", log.samples.size()},
                    {"notes", log.notes},
                    {"unknown_lines", unknown_json(log)},
                    {"facts", log.facts}});
    for (const auto& sample : log.samples) rows.push_back(to_json(sample));
    samples.insert(samples.end(), log.samples.begin(), log.samples.end());
  }
  std::vector<calibrate::CurveCard> curves;
  for (const auto& table : calibrate::collective_tables(samples)) {
    curves.push_back(
        {fmt::format("{} {} ranks {} nodes", table.operation, table.ranks, table.nodes),
         table.times.points().size(), calibrate::interpolation_error_pct(table.times)});
  }
  if (flags.out) {
    write_json(*flags.out, imported_profile(flags, samples));
    write_json(samples_path(*flags.out), {{"logs", logs}, {"samples", rows}});
    if (!flags.json) fmt::print("wrote {} and its samples\n", *flags.out);
  }
  if (!flags.json) return;
  const Json profile = flags.out ? Json(*flags.out) : Json{};
  fmt::print(
      "{}\n",
      Json{{"profile", profile}, {"samples", rows}, {"curves", curves_json(curves)}, {"logs", logs}}
          .dump(2));
}

// ---- measuring

Time budget_of(const CalibrateFlags& flags) {
  const auto budget = parse_quantity<Time>(flags.budget);
  if (!budget || *budget < 1_s) {
    throw InputError{"--budget",
                     fmt::format("expected a time of 1 s or more, found '{}'", flags.budget)};
  }
  return *budget;
}

void check_ranks(const std::vector<int>& ranks) {
  for (const int each : ranks) {
    if (each < 1 || each > 64) {
      throw InputError{"--ranks", fmt::format("expected counts from 1 to 64, found {}", each)};
    }
  }
}

/// Every point's median with what it was, without the single runs.
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

void print_findings(const calibrate::Findings& found, const calibrate::Profile& profile) {
  fmt::print("{}\n", source_line(found.machine));
  fmt::print("  {:<28} {:>7} {:>12}\n", "curve", "points", "left out");
  for (const auto& each : profile.curves) {
    const auto& error = each.leave_out_error_pct;
    fmt::print("  {:<28} {:>7} {:>12}\n", each.name, each.points,
               error ? fmt::format("{:.1f} %", *error) : "too few");
  }
  for (const auto& each : found.concurrency) {
    fmt::print("  {} ranks at once: products take {:.2f} times as long, other kernels {:.2f}\n",
               each.ranks, each.gemm, each.memory_bound);
  }
  if (found.discarded_runs + found.disturbed_points + found.points_left_out > 0) {
    fmt::print(
        "  {} runs discarded beside a disturbed reference, {} points kept though disturbed, "
        "{} left out by the budget\n",
        found.discarded_runs, found.disturbed_points, found.points_left_out);
  }
}

int measure(const CalibrateFlags& flags) {
  if (flags.backend != "cpu") {
    throw InputError{"--backend", fmt::format("expected cpu, found '{}'", flags.backend)};
  }
  check_ranks(flags.ranks);
  const Time budget = budget_of(flags);
  if (flags.out) {
    require_writable(*flags.out);
    require_writable(samples_path(*flags.out));
  }
  CalibrationWorlds worlds{flags.fabric};
  const Json profile_of_stack = models::software_profile("orrery-cpu");
  const Document stack = Document::from(profile_of_stack, "orrery-cpu");
  const CalibrationBlocks blocks = calibration_blocks(models::read_software(stack.root()));
  calibrate::CampaignInputs inputs;
  inputs.blocks = blocks.blocks;
  inputs.ranks = flags.ranks;
  inputs.device = [] { return std::make_unique<executor::CpuDevice>(); };
  inputs.world = [&worlds](int ranks) { return worlds.make(ranks); };
  const std::filesystem::path folder = std::filesystem::path{flags.out.value_or("")}.parent_path();
  inputs.folder = folder.empty() ? "." : folder;
  inputs.rules.budget = budget;
  inputs.seed = flags.seed;
  const Watch watch;
  inputs.watcher = watched_progress("points");
  const auto clock = calibrate::machine_clock();
  const calibrate::Findings found = run_campaign(inputs, *clock);
  if (found.products.empty()) return exit_interrupted;
  const calibrate::Profile profile = make_profile(found, profile_of_stack);
  if (flags.out) {
    write_json(*flags.out, profile.cluster);
    write_json(samples_path(*flags.out),
               {{"machine", to_json(found.machine)}, {"measurements", found.raw}});
  }
  if (flags.json) {
    fmt::print("{}\n", Json{{"profile", flags.out ? Json(*flags.out) : Json{}},
                            {"samples", medians(found.raw)},
                            {"curves", curves_json(profile.curves)},
                            {"machine", to_json(found.machine)},
                            {"discarded_runs", found.discarded_runs},
                            {"disturbed_points", found.disturbed_points},
                            {"points_left_out", found.points_left_out}}
                           .dump(2));
  } else {
    print_findings(found, profile);
  }
  return Watch::interrupted() ? exit_interrupted : exit_done;
}

}  // namespace

void add_calibrate(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "calibrate", "Measure this machine, or import others' logs, into a cluster profile");
  const auto flags = std::make_shared<CalibrateFlags>();
  command.add_option("--import", flags->logs,
                     "Logs: nccl-tests, NCCL, OSU, perftest, fio, BabelStream, Kineto");
  command.add_option("--backend", flags->backend, "What to measure: cpu (default)");
  command.add_option("--budget", flags->budget, "Time that measuring takes (60s)");
  command.add_option("--ranks", flags->ranks, "Ranks at once to measure with (1,2)")
      ->delimiter(',');
  command.add_option("--fabric", flags->fabric,
                     "How ranks reach each other: tcp (default), threads");
  command.add_option("--cluster", flags->cluster, "With --import: the cluster that was measured");
  command.add_option("--out", flags->out, "Profile to write; its samples go beside it");
  command.add_option("--seed", flags->seed, "Of the order of points (1)");
  command.add_flag("--json", flags->json, "One JSON document on stdout");
  command.callback([flags, &exit_code] {
    if (flags->logs.empty()) {
      try {
        exit_code = measure(*flags);
      } catch (const executor::RunFailure& failure) {
        fmt::print(stderr, "{}\n", printable(failure.what()));
        exit_code = static_cast<int>(failure.code());
      }
    } else {
      import_logs(*flags);
      exit_code = exit_done;
    }
  });
}

}  // namespace orrery::scenarios
