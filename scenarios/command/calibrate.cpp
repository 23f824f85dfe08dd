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

#include "calibrate/import/onto_cluster.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/errors.hpp"
#include "hardware/catalogue.hpp"
#include "scenarios/command/calibrate_blocks.hpp"
#include "scenarios/command/calibrate_gpu.hpp"
#include "scenarios/command/calibrate_output.hpp"
#include "scenarios/command/calibrate_world.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/ending.hpp"
#include "scenarios/command/execute_backend.hpp"
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
  std::int64_t widest = 16384;
  bool json = false;
};

// ---- importing

/// The cluster that logs are of, or nothing where the flag does not name it.
Json cluster_of(const CalibrateFlags& flags) {
  if (!flags.cluster) return Json::object();
  return is_path(*flags.cluster) ? hardware::expand_cluster(Document::load(*flags.cluster).root())
                                 : hardware::Catalogue::cluster(*flags.cluster);
}

/// The cluster with imported tables laid over it, or the tables alone.
Json imported_profile(const CalibrateFlags& flags, Json profile,
                      const std::vector<calibrate::Sample>& samples) {
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

std::string import_report(const calibrate::Imported& log) {
  std::string text = fmt::format("{}: {}, {} samples\n", printable(log.file),
                                 calibrate::name(log.format), log.samples.size());
  std::map<std::string, std::pair<std::size_t, const calibrate::Sample*>> by_quantity;
  for (const auto& sample : log.samples) {
    auto& [count, last] = by_quantity[sample.quantity];
    ++count;
    last = &sample;
  }
  for (const auto& [quantity, entry] : by_quantity) {
    const calibrate::Sample& last = *entry.second;
    text += fmt::format("  {:<24} {:>5}  last {}{}{}{}\n", quantity, entry.first,
                        calibrate::format(last.value),
                        last.size ? fmt::format(" for {} B", last.size->count()) : "",
                        last.ranks ? fmt::format(", {} ranks", *last.ranks) : "",
                        last.device.empty() ? "" : ", " + printable(last.device));
  }
  for (const std::string& note : log.notes) text += fmt::format("  note: {}\n", printable(note));
  if (log.unknown.empty()) return text;
  constexpr std::size_t shown = 5;
  text += fmt::format("  {} lines not understood:\n", log.unknown.size());
  for (std::size_t i = 0; i < std::min(shown, log.unknown.size()); ++i) {
    text +=
        fmt::format("    line {}: {}\n", log.unknown[i].line, printable(log.unknown[i].text, 100));
  }
  return text;
}

void import_logs(const CalibrateFlags& flags) {
  std::vector<calibrate::Sample> samples;
  Json logs = Json::array(), rows = Json::array();
  std::string text;  // printed when nothing is wrong any more
  const Document cluster = Document::from(cluster_of(flags), flags.cluster.value_or(""));
  for (const std::string& path : flags.logs) {
    calibrate::Imported log = calibrate::import_log(path);
    if (flags.cluster) lay_onto(hardware::read_cluster(cluster.root()), log);
    text += import_report(log);
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
    write_json(*flags.out, imported_profile(flags, cluster.json(), samples));
    write_json(samples_path(*flags.out), {{"logs", logs}, {"samples", rows}});
    text += fmt::format("wrote {} and its samples{}\n", *flags.out,
                        flags.cluster ? ""
                                      : "; tables alone: name the cluster that was measured with "
                                        "--cluster for a profile that simulate takes");
  }
  if (!flags.json) {
    fmt::print("{}", text);
    return;
  }
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

void print_findings(const calibrate::Findings& found, const calibrate::Profile& profile) {
  fmt::print("{}\n", source_line(found.machine));
  print_curves(profile.curves);
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

int measure_gpus(const CalibrateFlags& flags) {
  if (flags.widest < 128) {
    throw InputError{"--widest", fmt::format("expected 128 or more, found {}", flags.widest)};
  }
  return calibrate_gpus({.budget = budget_of(flags),
                         .out = flags.out,
                         .seed = flags.seed,
                         .widest = flags.widest,
                         .json = flags.json});
}

int measure(const CalibrateFlags& flags) {
  if (backend_of(flags.backend) == Backend::cuda) return measure_gpus(flags);
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
  SampleLines lines{flags.out};
  inputs.sample = [&](const Json& sample) { lines.add(sample); };
  const auto clock = calibrate::machine_clock();
  const calibrate::Findings found = run_campaign(inputs, *clock);
  if (found.products.empty()) return Watch::exit_code();
  const calibrate::Profile profile = make_profile(found, profile_of_stack);
  if (flags.out) {
    write_json(*flags.out, profile.cluster);
    write_json(samples_path(*flags.out),
               {{"machine", to_json(found.machine)}, {"measurements", found.raw}});
    lines.remove();
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
  return Watch::exit_code();
}

}  // namespace

void add_calibrate(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "calibrate", "Measure this machine, or import others' logs, into a cluster profile");
  const auto flags = std::make_shared<CalibrateFlags>();
  command.add_option("--import", flags->logs,
                     "Logs: nccl-tests, NCCL, OSU, perftest, fio, BabelStream, Kineto");
  command.add_option("--backend", flags->backend, "What to measure: cpu (default), cuda");
  command.add_option("--budget", flags->budget, "Time that measuring takes (60s)");
  command.add_option("--ranks", flags->ranks, "Ranks at once to measure with (1,2)")
      ->delimiter(',');
  command.add_option("--fabric", flags->fabric,
                     "How ranks reach each other: tcp (default), threads");
  command.add_option("--cluster", flags->cluster, "With --import: the cluster that was measured");
  command.add_option("--widest", flags->widest,
                     "With --backend cuda: hidden size of the widest model measured (16384)");
  command.add_option("--out", flags->out, "Profile to write; its samples go beside it");
  command.add_option("--seed", flags->seed, "Of the order of points (1)");
  command.add_flag("--json", flags->json, "One JSON document on stdout");
  command.callback([flags, &exit_code] {
    if (flags->logs.empty()) {
      try {
        exit_code = measure(*flags);
      } catch (const executor::RunFailure& failure) {
        exit_code = tell(failure_of(static_cast<int>(failure.code()), failure.what()), flags->json);
      }
    } else {
      import_logs(*flags);
      exit_code = exit_done;
    }
  });
}

}  // namespace orrery::scenarios
